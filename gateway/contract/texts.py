"""Which characters the texts may hold that partners send, as patterns for the OpenAPI document.

They are written in the words that Python's and JavaScript's regular expressions share, so beyond
U+FFFF nothing is named there; HIDDEN_FURTHER is what that leaves out.
"""

# No control characters; a text of several lines may hold newlines.
_CONTROLS = r"\u0000-\u001f\u007f-\u009f"
_CONTROLS_BUT_NEWLINE = r"\u0000-\u0009\u000b-\u001f\u007f-\u009f"
# What a person at the clinic's desk does not see, or what makes them see another text than the one
# that was sent: the characters that programs show as nothing (Unicode's
# Default_Ignorable_Code_Point, such as zero-width spaces and joiners), the controls of the writing
# direction, the separators of lines and paragraphs, and annotations between lines.
HIDDEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff0-\ufffb"
)
HIDDEN_FURTHER = (
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# One of these may follow a sign, as emoji need it; a run of them hides what it likes.
SELECTORS = r"\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"

PLAIN_LINE = rf"^[^{_CONTROLS}]*$"
PLAIN_TEXT = rf"^[^{_CONTROLS_BUT_NEWLINE}{HIDDEN}]*$"
