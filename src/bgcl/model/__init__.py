"""The model: encoders, objectives, the network that joins them, its training, and draws from its posterior."""
