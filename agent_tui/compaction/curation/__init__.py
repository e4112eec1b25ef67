"""The conversation's model chooses what stays; code checks its choice.

`pieces` numbers what can be kept, `question` makes the request and `ask` words it, `answer` reads
the reply, `curator` sends the one and receives the other, `excerpts` puts the choice into the
summary, `present_lines` finds its lines as they are now, and `since` marks where notes end.
"""
