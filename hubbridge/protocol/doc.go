// Package protocol defines the messages of the hub protocol, version 1, between hubs and the cloud
// over MQTT. Each message is one JSON object. The package has no behaviour. The cloud and the
// virtual hub share only this package and domain.
//
// A hub <id> publishes hub/<id>/hello, hub/<id>/events and hub/<id>/response/<token>, and
// subscribes to hub/<id>/ack and hub/<id>/request.
package protocol
