"""Augmentation: drop rates and their posterior, masks, the language of masks, and the masks of a view."""
