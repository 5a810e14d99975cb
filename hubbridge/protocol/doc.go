// Package protocol holds the messages of the hub link, version 1: what hubs and the cloud say to each
// other over MQTT, as JSON, one object a message. It holds no behaviour. Both sides use it and
// share nothing else.
//
// A hub <id> publishes hub/<id>/hello, hub/<id>/events and hub/<id>/response/<token>, and
// subscribes to hub/<id>/ack and hub/<id>/request.
package protocol
