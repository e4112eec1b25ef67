"""The conversation's model chooses what stays; code checks its choice.

`pieces` numbers what can be kept, `question` makes the question from the conversation (`ask`),
`choosing` finds who asks it, `answer` holds the choice and proves it, `excerpts` puts it into the
summary, `present_lines` finds its lines as they are now, and `since` marks where notes end.
"""
