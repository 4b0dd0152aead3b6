"""What a user touches: pipeline, synthesizer, plan, report, command line."""
