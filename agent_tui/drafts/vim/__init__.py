"""Editing a draft with the keys of vi: keys go in, a changed text comes out, without a screen."""
