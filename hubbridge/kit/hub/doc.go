// Package hub is a library for hubs: programs in a building that connect devices to the cloud. It
// speaks the cloud's hub protocol, so that a hub's own code is a Handler: what its devices are and
// what they do. The example in hubbridge/kit/hub/example is a whole hub.
//
//	house := &house{}
//	h, err := hub.New(hub.Config{
//		EnrollURL: "https://cloud.example.com", Serial: serial, Secret: secret,
//		Dir: "/var/lib/hub", Firmware: "1.0.0", Handler: house,
//	})
//	…
//	house.hub = h
//	err = h.Run(ctx)
//
// A Hub enrols for a certificate and renews it, connects, says hello, sends its numbered events
// until they are acknowledged, and answers requests by calling its Handler.
//
// Promises:
//
//   - A number stands for one event. With a directory, events survive kill -9 and also a power cut,
//     since an event is on disk before it is first sent. If there are more events than the hub can
//     keep, it drops the oldest and reports the loss in a hello.
//   - Events are delivered in order and at least once: they are sent again until acknowledged.
//   - A command id runs once in 24 hours, even if two requests with it arrive together and, with a
//     directory, over a restart: the answer, the channel.desired event and the changes that the
//     Handler passes to Command.Accept are stored as one. ErrorHubUnavailable is not remembered.
//   - Answers about devices tell the last event that they take into account, so that the cloud can
//     order answers and events whatever the hub's clock shows.
//   - Up to 256 requests are answered concurrently. Further ones are answered with busy.
//   - Run owns every goroutine and returns when all have ended. All methods are safe for concurrent
//     use, before, during and after Run.
//
// An Engine is a hub without network and goroutines, for programs that have an MQTT client of their
// own. The packages below are the parts of both: journal (storage), sendwindow (flow control),
// enrolment (certificates), brokerconn (the TLS connection) and notify (waiting for a change).
package hub
