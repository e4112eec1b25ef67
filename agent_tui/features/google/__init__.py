"""Gemini's protocol, and both protocols of Vertex AI."""
