// Package harness drives the built binary as its users do: it starts it, kills it, calls its
// command line and its API, reads the mails that it sends, and plays hubs against it over real MQTT
// and TLS: raw ones that do what a test says, and virtual ones that behave. It knows the service
// only from the contract, the hub link and the command line's help, and holds every answer to
// openapi.yaml. A Target is a service of a suite's own, or any other that the environment names.
package harness
