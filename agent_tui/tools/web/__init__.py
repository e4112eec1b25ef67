"""Reading pages of the web: which addresses, how they are got, how they become text."""
