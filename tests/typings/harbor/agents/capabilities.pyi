from pydantic import BaseModel

class AgentCapabilities(BaseModel):
    atif: bool = ...
