"""The whole mapping file: the backend, the resources, the diary and the booking."""

from typing import Literal

from pydantic import Field, model_validator

from adapters.mapping.conversion import Listed, Scalar, Strict, Zone
from adapters.rest.mapping.calls import Call, CallPath, Expr, Form, Regex, Tree
from adapters.rest.mapping.diary import Booking, Diary
from adapters.rest.mapping.resources import ResourceMap

MEANINGS = ("slot taken", "not found", "rejected", "unavailable", "logged out", "unusable")


class Login(Call):
    """Gets a token."""

    token: Expr = Field(examples=["access_token"])
    seconds: Expr | None = None
    lifetime: int | None = Field(default=None, ge=5, le=86_400)
    header: str = "Authorization"
    form: Form = "Bearer {}"


class ErrorRule(Strict):
    """What an answer means that fits all the conditions."""

    status: Listed[int] | int | None = None
    path: Expr | None = None
    is_: Listed[Scalar] | None = Field(default=None, alias="is", min_length=1)
    text: Regex | None = None
    means: Literal["slot taken", "not found", "rejected", "unavailable", "logged out", "unusable"]

    @model_validator(mode="after")
    def _some_condition(self) -> "ErrorRule":
        if self.status is None and self.is_ is None and self.text is None:
            raise ValueError("needs a condition: status, path and is, or text")
        if (self.is_ is not None and self.path is None) or (
            self.path is not None and self.is_ is None and self.text is None
        ):
            raise ValueError("path goes with is or text, and is with path")
        if self.text is not None and self.path is None and self._good_alone():
            raise ValueError(
                "text needs path in an answer of 2xx, which may repeat what a partner wrote"
            )
        return self

    def _good_alone(self) -> bool:
        """Whether only answers that say that all is well are meant."""
        statuses = (self.status,) if isinstance(self.status, int) else self.status
        return statuses is not None and all(200 <= each < 300 for each in statuses)


class Backend(Strict):
    """How to speak to the backend, whatever is asked of it."""

    headers: dict[str, Tree] = Field(default_factory=dict)
    basic: Listed[Literal["user", "password", "token"]] | None = Field(
        default=None, min_length=2, max_length=2
    )
    login: Login | None = None
    errors: Listed[ErrorRule] = ()
    ping: CallPath | None = None


class Mapping(Strict):
    """A whole mapping file."""

    version: Literal[1] = Field(examples=[1])
    zone: Zone = Field(examples=["Europe/Paris"])
    backend: Backend = Field(default_factory=Backend)
    resources: dict[str, ResourceMap]
    diary: Diary
    booking: Booking
