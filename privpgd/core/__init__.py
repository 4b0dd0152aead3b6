"""What every folder shares: records, checks, errors, files, protocols, figures."""
