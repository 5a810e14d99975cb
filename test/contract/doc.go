// Package contract holds the contract against the built binary over HTTP, with hubs over real MQTT: one file a part of it.
package contract
