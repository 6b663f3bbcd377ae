"""privfit.estimators."""
