"""The paper: embedding, Wasserstein distances, projection, particles."""
