package protocol

// Rule is a rule of the hub protocol, as README.md states it.
type Rule struct {
	// ID identifies the rule, such as R-hello-1. It is also the rule's anchor on the page.
	ID string
	// Sentence is the text of the rule, in Markdown.
	Sentence string
}

// Rules returns every rule of the page, in its order.
func Rules() []Rule {
	return []Rule{
		{
			"R-json-1",
			"Every message MUST be one JSON object in UTF-8.",
		},
		{
			"R-json-2",
			"A hub MUST ignore members that it does not know, in every message of the " +
				"cloud.",
		},
		{
			"R-json-3",
			"Numbers of events (`seq`, `oldest`, `newest`, `through`) MUST be integers " +
				"from 0 to 2^53 - 1, written as plain digits: `1.0` and `1e3` are invalid.",
		},
		{
			"R-json-4",
			"An event and the value of a channel MUST be nested at most 32 levels, and MUST " +
				"have no number beyond those that a double (IEEE 754) can hold, such as `1e400`.",
		},
		{
			"R-time-1",
			"Timestamps MUST be RFC 3339 with an offset, such as " +
				"`2026-01-02T03:04:05.123456Z`; digits beyond microseconds are cut off.",
		},
		{
			"R-identity-1",
			"A hub ID is `<prefix>-<4>-<4>-<4>` in lower case, the prefix " +
				"`[a-z][a-z0-9]{1,11}` and each group `[a-z0-9]{4}`; the Serial is the same in " +
				"upper case.",
		},
		{
			"R-enrol-1",
			"A hub gets its certificate with `POST {public}/link/v1/certificates`, " +
				"`Content-Type: application/json`, and an object of `serial`, `secret` and " +
				"`csr`.",
		},
		{
			"R-enrol-2",
			"`csr` MUST be one PEM block `CERTIFICATE REQUEST` (PKCS#10) of at most 16 " +
				"KiB, signed with its own key, which MUST be on P-256, P-384 or P-521, " +
				"Ed25519, or RSA with 2,048 to 8,192 bits.",
		},
		{
			"R-enrol-3",
			"A hub MUST keep its key, its certificate, the `ca` and the `broker` address " +
				"of the answer over restarts.",
		},
		{
			"R-enrol-4",
			"A hub enrols when it has no certificate and when its certificate has less " +
				"than 30 days left.",
		},
		{
			"R-enrol-5",
			"A hub that the broker refuses enrols again: at once after a restart, " +
				"otherwise every six hours.",
		},
		{
			"R-enrol-6",
			"After an error other than `400` and `401` a hub SHOULD try again later, after " +
				"`Retry-After` seconds if the answer has that header; it keeps the certificate " +
				"that it has.",
		},
		{
			"R-enrol-7",
			"A hub whose `ca` does not verify the broker's certificate in 3 TLS handshakes in " +
				"a row SHOULD enrol again, with the same `{public}` and secret as before, and " +
				"after that at most once an hour for this reason.",
		},
		{
			"R-connect-1",
			"A hub connects with MQTT 3.1.1 (protocol level 4) over TLS 1.2 or later, with " +
				"its certificate as client certificate, and MUST verify the broker's " +
				"certificate against `ca`.",
		},
		{
			"R-connect-2",
			"The client ID MUST be the hub ID.",
		},
		{
			"R-connect-3",
			"A hub MUST connect with a clean session.",
		},
		{
			"R-connect-4",
			"The keep-alive MUST be from 1 to 60 seconds; 30 are recommended.",
		},
		{
			"R-connect-5",
			"A hub MUST NOT publish with QoS 2; QoS 0 is enough, since every message that " +
				"matters is acknowledged by the protocol itself.",
		},
		{
			"R-connect-6",
			"A hub MUST NOT publish retained messages, and MUST NOT set a will.",
		},
		{
			"R-connect-7",
			"A hub MUST publish only to `hub/<hub_id>/hello`, `hub/<hub_id>/events` and " +
				"`hub/<hub_id>/response/<token>`, and subscribe only to `hub/<hub_id>/ack` and " +
				"`hub/<hub_id>/request`.",
		},
		{
			"R-connect-8",
			"A hub whose connection ended connects again, and SHOULD wait at least one " +
				"second before, and longer after each failure, up to half a minute, each wait " +
				"varied at random.",
		},
		{
			"R-connect-9",
			"A hub MUST have at most one connection: a connection with the same client ID " +
				"ends the former.",
		},
		{
			"R-log-1",
			"A hub numbers its events 1, 2, 3, … without gaps, and MUST NOT use a number " +
				"of its log for two different events.",
		},
		{
			"R-log-2",
			"The log's identity is of the hub's own making, MUST match " +
				"`[A-Za-z0-9_-]{1,64}`, and MUST change when, and only when, the hub is reset " +
				"to factory state or has lost its log; then the numbering starts again at 1.",
		},
		{
			"R-log-3",
			"A hub keeps its newest events, as many as it has room for, until an ack " +
				"covers them; log identity, numbers and events SHOULD survive a restart.",
		},
		{
			"R-hello-1",
			"After each connect a hub MUST subscribe to `ack` and `request`, and MUST NOT " +
				"send `hello` before the broker has granted both.",
		},
		{
			"R-hello-2",
			"A hello MUST have `protocol` 1, `log`, `oldest` and `newest`.",
		},
		{
			"R-hello-3",
			"`oldest` MUST be the lowest number that the hub still holds and `newest` the " +
				"highest that it ever gave in this log; `oldest` is `newest` + 1 when it holds " +
				"none.",
		},
		{
			"R-hello-4",
			"A hub MUST send its hello again every 5 seconds until an ack arrives.",
		},
		{
			"R-hello-5",
			"A hub MUST NOT send events on a connection before the ack of its hello, which " +
				"tells it where to go on.",
		},
		{
			"R-hello-6",
			"A hub that has dropped events that were not acknowledged MUST send a hello " +
				"with its new `oldest`.",
		},
		{
			"R-hello-7",
			"A hello SHOULD have `firmware` with a `version`, `network` with the members " +
				"below, and `clock_trusted`.",
		},
		{
			"R-ack-1",
			"Every event of `log` up to `through` is stored and need not be sent again; " +
				"the hub sends from `through` + 1 on.",
		},
		{
			"R-ack-2",
			"Within one connection a hub MUST ignore a `through` that is lower than the " +
				"one before; the first ack after the hello of a new connection counts as it " +
				"is, also if it is lower than on the connection before.",
		},
		{
			"R-ack-3",
			"A hub MUST ignore an ack of another log than its own.",
		},
		{
			"R-ack-4",
			"A hub that no longer holds `through` + 1 MUST send a hello.",
		},
		{
			"R-ack-5",
			"A hub whose `newest` is below `through` MUST give its next event the number " +
				"`through` + 1.",
		},
		{
			"R-events-1",
			"An events message MUST have the hub's `log` and 1 to 500 `events` whose `seq` " +
				"rise by one.",
		},
		{
			"R-events-2",
			"An events message MUST have at most 256 KiB (262,144 bytes).",
		},
		{
			"R-events-3",
			"An event MUST have at most 16 KiB (16,384 bytes) in its message.",
		},
		{
			"R-events-4",
			"A hub MUST NOT have more than 2,000 events unacknowledged on their way; it " +
				"sends the next message without waiting for the ack of the last.",
		},
		{
			"R-events-5",
			"A hub MUST send again from `through` + 1 if no ack comes for 5 seconds while " +
				"events are on their way.",
		},
		{
			"R-events-6",
			"A hub MUST send again from `through` + 1 when an ack repeats `through` " +
				"because the cloud has found a gap before the events on their way.",
		},
		{
			"R-events-7",
			"An event that is sent again MUST have the same number and the same content.",
		},
		{
			"R-events-8",
			"An event MUST be well formed: an object with `type` a string that is not " +
				"empty, `time` an RFC 3339 timestamp, `device_id` an integer or null, " +
				"`clock_trusted` a boolean or null, and `data` an object.",
		},
		{
			"R-events-9",
			"The `type` of an event MUST NOT begin with `hub.`, which is for the cloud's " +
				"own events.",
		},
		{
			"R-type-1",
			"A hub MUST send `channel.observed` whenever a device reports a changed value, " +
				"whenever a report is the outcome of a command, and on every report of `alarm` " +
				"and `scene` channels.",
		},
		{
			"R-type-2",
			"A hub MUST send `device.added` when a device has joined, `device.updated` " +
				"when its name or channels changed, and `device.forgotten` when it was " +
				"removed.",
		},
		{
			"R-type-3",
			"A hub MUST send `device.unavailable` when it can no longer reach a device, " +
				"and `device.available` when it reaches it again.",
		},
		{
			"R-type-4",
			"The `data` of an event whose type is in the table below MUST have the members " +
				"that the table names.",
		},
		{
			"R-request-1",
			"A hub MUST answer each request on `hub/<hub_id>/response/<token>`, with the " +
				"request's `token` copied as it is: one or more topic levels.",
		},
		{
			"R-request-2",
			"A response MUST have the request's `id` and exactly one of `result`, an " +
				"object, and `error`.",
		},
		{
			"R-request-3",
			"A hub MUST answer requests side by side: a slow one holds up no other.",
		},
		{
			"R-request-4",
			"A hub answers within `timeout_ms`; after it the cloud listens no more.",
		},
		{
			"R-request-5",
			"A response MUST have at most 1 MiB.",
		},
		{
			"R-request-6",
			"A hub MUST answer a method that it does not know with an error, such as " +
				"`unknown_method`.",
		},
		{
			"R-error-1",
			"An `error` MUST have a `type`, a string that is not empty, and SHOULD have a " +
				"`message` for people.",
		},
		{
			"R-error-2",
			"A hub that cannot act now, because its radio is down or it does not know the " +
				"time yet, MUST answer `hub_unavailable`.",
		},
		{
			"R-error-3",
			"A hub MUST use the error types of the method's row below; any other type is " +
				"reported to clients as `hub_error`.",
		},
		{
			"R-list-1",
			"`devices.list` MUST answer all devices of the hub, each a Device whose " +
				"channels have no `value`, `observed_at`, `desired`, `desired_at` and " +
				"`status`.",
		},
		{
			"R-list-2",
			"The number in `last_event` of an answer to `devices.list` or `devices.get` MUST be " +
				"such that the answer takes every event up to it into account, 0 before the " +
				"first; the hub MUST NOT use the number for another event later.",
		},
		{
			"R-get-1",
			"`devices.get` MUST answer the device with the ID of the request, each of its " +
				"channels with values and `status`.",
		},
		{
			"R-get-2",
			"`devices.get` of a device that the hub does not have MUST be answered with " +
				"`not_found`.",
		},
		{
			"R-forget-1",
			"`devices.forget` MUST remove a device that the hub can no longer reach, " +
				"answer `{}`, and be followed by the event `device.forgotten`.",
		},
		{
			"R-forget-2",
			"`devices.forget` MUST be answered with `invalid_request` for a device that is " +
				"still on the hub's network, and with `not_found` for one that the hub does " +
				"not have.",
		},
		{
			"R-forget-3",
			"A hub whose radio does not let the device go, or cannot say whether it is still " +
				"there, MUST keep the device and answer with an error.",
		},
		{
			"R-command-1",
			"A hub that accepts a command MUST answer the Channel with values, `status` " +
				"`pending`, `desired` the value of the command, and `value` still the last " +
				"report.",
		},
		{
			"R-command-2",
			"A command MUST be answered with `not_found` if the device or channel does not " +
				"exist, and with `invalid_request` if the channel is read-only or does not " +
				"take the value.",
		},
		{
			"R-command-3",
			"A hub that will not drive the device, such as a lock that did not join " +
				"securely, MUST answer `command_refused`.",
		},
		{
			"R-command-4",
			"A hub MUST run a `command_id` once: for 24 hours it answers a repeat with its " +
				"first answer, without acting again.",
		},
		{
			"R-command-5",
			"Of two requests with one `command_id` that arrive at the same moment only one " +
				"MUST run, and both get the same answer.",
		},
		{
			"R-command-6",
			"An answer `hub_unavailable` MUST NOT be remembered: nothing was run, and a " +
				"repeat may run.",
		},
		{
			"R-command-7",
			"An accepted command MUST be followed by the event `channel.desired`, then by " +
				"`channel.observed` with what the device reports.",
		},
		{
			"R-pairing-1",
			"`pairing.open` MUST open the pairing window for 120 seconds and one device, " +
				"or restart it if it is open, and answer `status` `open` and `expires_in` in " +
				"seconds.",
		},
		{
			"R-pairing-2",
			"A hub MUST answer `invalid_request` to a `setup_code` that it cannot read.",
		},
		{
			"R-pairing-3",
			"When a device joins, the window closes and the event `device.added` follows " +
				"with the new `device_id`.",
		},
		{
			"R-pairing-4",
			"`pairing.close` MUST close the pairing window and answer `{}`, also if it is " +
				"closed already.",
		},
		{
			"R-removal-1",
			"`removal.open` MUST open the removal window for 120 seconds, or restart it if " +
				"it is open, and answer as `pairing.open`; a device whose button is pressed " +
				"leaves, the window closes, and the event `device.forgotten` follows.",
		},
		{
			"R-removal-2",
			"`removal.close` MUST close the removal window and answer `{}`, also if it is " +
				"closed already.",
		},
		{
			"R-device-1",
			"A Device MUST have `id`, `name`, `manufacturer`, `model` and `channels`; `id` " +
				"is an integer that the hub MUST NOT give to another device later.",
		},
		{
			"R-channel-1",
			"A Channel MUST have `key`, `endpoint`, `kind`, `unit` and `available`, and be " +
				"the only one of its device with that `key` and `endpoint`.",
		},
		{
			"R-channel-2",
			"In `devices.list` and `devices.get` a Channel MUST have `readable`, " +
				"`writable` and `capabilities`.",
		},
		{
			"R-channel-3",
			"In `devices.get` and in the answer to a command a Channel MUST have `value`, " +
				"`observed_at`, `desired`, `desired_at` and `status`; all but `status` may be " +
				"null.",
		},
		{
			"R-channel-4",
			"`status` MUST follow the table of states below.",
		},
		{
			"R-channel-5",
			"The value of a channel whose key is in the table of keys MUST have the form of " +
				"that table, or be null.",
		},
		{
			"R-join-1",
			"A hub MUST send `device.added` once, as soon as a device has joined, and " +
				"`device.updated` when channels of it are added later, as while it is " +
				"interviewed.",
		},
		{
			"R-join-2",
			"`device.added` SHOULD have `secure` false if the device joined without the " +
				"security that it needs; the hub then answers its commands by R-command-3.",
		},
		{
			"R-join-3",
			"A hub SHOULD send `device.join_failed` when a device has failed to join; the " +
				"window stays open for the rest of its time.",
		},
		{
			"R-join-4",
			"A hub MAY keep a `setup_code` with which a device joins by itself (SmartStart) " +
				"after the window has closed, until the device has joined, `pairing.close` comes, " +
				"or the hub is reset.",
		},
		{
			"R-sleep-1",
			"A command to a device that sleeps SHOULD be accepted and wait, `pending`, until " +
				"the device wakes; a later command to the channel takes its place.",
		},
		{
			"R-sleep-2",
			"A Device that sleeps SHOULD have `wakes_at`, the time at which it is expected to " +
				"wake next.",
		},
		{
			"R-sleep-3",
			"A device that sleeps as expected is `available`; one that has missed its time to " +
				"wake is not, and `device.unavailable` follows.",
		},
	}
}
