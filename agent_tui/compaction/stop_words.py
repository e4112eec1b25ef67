"""Words that are no names: common English, and the vocabulary of programming languages."""

_WORDS = """
able about above after again against ahead also although always among another anything around
away based because been before being below best better between both came cannot case could
does doesn doing done down during each either else ever every everything exactly first found
from fully further gave given gives goes going gone good have haven having here however
instead into isn itself just know known last later least less like likely look looking looks
made make makes making many maybe more most much must need needed needs never next nothing
now only onto other otherwise ours over perhaps please possible probably quite rather really
right same seem seems shall should shouldn since some something still such sure take taken
takes than that their them then there therefore these they thing things this those though
through thus together under unless until upon used uses using very want wants wasn well went
were what when where whether which while whole whose will with within without would wouldn
years your yours
async await break class const continue default elif else enum except export extends false
finally function global implements import interface lambda none null pass private protected
public raise readonly return self static struct super switch throw true typeof undefined void
yield
"""

STOP_WORDS = frozenset(_WORDS.split())
