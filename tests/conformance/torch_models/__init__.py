"""Sixty models of PyTorch at small sizes with random weights, and their trials. Nothing is downloaded."""
