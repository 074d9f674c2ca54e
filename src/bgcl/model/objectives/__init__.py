"""Objectives, one file each: what the encoder minimizes and the augmentation maximizes."""
