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
// A Hub has two goroutines while it is connected, and one for each request: one process can run
// thousands. Its files, from below: journal.go and disk.go (storage), window.go (flow control),
// engine.go (the log, command ids and requests), conn.go (TLS and MQTT), identity.go, enrolment.go
// and schedule.go (certificates), session.go (one connection) and connections.go (one after the
// other).
//
// The flow control is as in the hub protocol:
//
//   - After a connect the hub sends a hello, again every 5 s, and nothing else until the cloud
//     acknowledges it with the number through which it has stored events.
//   - Then it sends events from the next number on, without waiting for acks, but never more than
//     protocol.MaxUnacknowledged events beyond the last ack.
//   - If no ack arrives for 5 s while events are in flight, it sends again from the number after
//     the last acknowledged one.
//   - An ack that repeats the last one while later events are in flight means that the cloud found
//     a gap: the hub sends again from there, at once. Messages that were already in flight cause
//     further acks with the same number, which the window recognizes and ignores.
//   - An ack with a lower number than the last is ignored, except for the first ack of a
//     connection: a restored cloud may have fewer events than before.
//   - If the hub has dropped the number that comes next, it sends a hello, which reports the loss.
package hub
