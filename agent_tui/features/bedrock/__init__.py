"""Amazon Bedrock's protocol."""
