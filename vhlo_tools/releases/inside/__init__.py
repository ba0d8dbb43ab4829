"""Scripts that run inside environments of releases, old ones included: they import nothing of this project."""
