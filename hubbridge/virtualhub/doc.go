// Package virtualhub is a whole hub in software. It speaks the hub link (package link, the messages
// alone) over MQTT and TLS and knows nothing else of the cloud: it serves demonstrations, tests and
// load, and is the cloud's counterpart in every test of the link.
//
// A Hub enrols for a certificate, connects, says hello, sends its numbered events until they are
// acknowledged, and answers requests about devices that behave plausibly. Faults can be asked of
// it, one by one, while it runs. A Fleet is many hubs in one process for load.
//
// Promises:
//
//   - Events are numbered once. With a directory they survive kill -9 and, since an event is on the
//     disk before it is first sent, a power cut too: a number that the cloud has seen never stands
//     for another event. What does not fit is dropped from the oldest on, and said in a hello.
//   - Events are delivered at least once and in order: sent again until acknowledged.
//   - A command id is run once in 24 hours, also when two requests with it arrive together, and
//     also over a restart with a directory: the command's answer, its effect on the device and its
//     channel.desired event are kept as one. hub_unavailable is not remembered.
//   - Requests are answered side by side, at most 256 at a time; more are answered busy.
//   - Run owns every goroutine and returns when all have ended. All methods are safe for concurrent
//     use, before, during and after Run.
//   - The state of the devices, and all that a request changes, is under one lock that is never
//     held while anything is sent.
//
// How the parts fit: controller is the hub's mind (devices, windows, command ids, what to send
// next) without goroutines or network; Hub gives it a connection by an ordinary MQTT library and a
// clock; Fleet gives many of them a small connection of its own and a few shared clocks. Packages
// device, journal and uplink hold the physics, the storage and the rules of flow control.
package virtualhub
