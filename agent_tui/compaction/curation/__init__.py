"""The conversation's model chooses what stays; code checks its choice.

`pieces` numbers what can be kept, `ask` words the request, `answer` reads the reply, `curator`
sends the one and receives the other, and `excerpts` puts the choice into the summary.
"""
