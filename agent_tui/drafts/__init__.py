"""What the person writes: a draft with its pastes and images, and the history of those sent."""
