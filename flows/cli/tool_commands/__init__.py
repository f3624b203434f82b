"""Commands about tools and domains, `synth tools` and `synth domain`, made like those in
`commands`."""
