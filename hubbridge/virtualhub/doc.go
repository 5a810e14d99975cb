// Package virtualhub is a complete hub in software, for demonstrations and tests. It speaks the hub
// protocol over MQTT and TLS and shares only the packages protocol and domain with the cloud's
// side.
//
// A Hub enrols for a certificate, connects, says hello, sends its numbered events until they are
// acknowledged, and answers requests about simulated devices. Its methods inject faults while it
// runs.
//
// Promises:
//
//   - A number stands for one event. With a directory, events survive kill -9 and also a power cut,
//     since an event is on disk before it is first sent. If there are more events than the hub can
//     keep, it drops the oldest and reports the loss in a hello.
//   - Events are delivered in order and at least once: they are sent again until acknowledged.
//   - A command id runs once in 24 hours, even if two requests with it arrive together and, with a
//     directory, over a restart: the answer, the effect on the device and the channel.desired event
//     are stored as one change. hub_unavailable is not remembered.
//   - Up to 256 requests are answered concurrently. Further ones are answered with busy.
//   - Run owns every goroutine and returns when all have ended. All methods are safe for concurrent
//     use, before, during and after Run.
//
// The packages below it are the parts of a hub: controller (the logic), device (simulated devices),
// journal (storage), sendwindow (flow control), enrolment (certificates) and brokerconn (the TLS
// connection). Package fleet runs many hubs in one process to generate load.
package virtualhub
