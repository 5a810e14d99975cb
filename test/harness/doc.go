// Package harness drives the built binary as its users do: it starts it, kills it, calls its command line and its API, and plays
// hubs against it over real MQTT and TLS. It knows the service only from the contract, the hub link and the command line's help, and holds
// every answer that its clients get to httpapi/openapi.yaml.
package harness
