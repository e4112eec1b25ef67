"""The model of the conversation says what stays; code vouches for it.

`pieces` numbers what can be kept, `ask` words the request, `answer` reads the reply, `curator`
sends one and gets the other, and `excerpts` puts what was chosen into the summary.
"""
