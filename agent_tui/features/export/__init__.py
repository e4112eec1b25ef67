"""Trajectories of Harbor, as a format of exports."""
