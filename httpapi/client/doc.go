// Package client is a Go client of the device-hub API. It has a typed method for each route,
// retries requests where that is safe, iterates over hubs' events, and can wait for the outcome of
// a command. It depends on the standard library only.
//
// # Use in another module
//
// The module's path names no host, so `go get` cannot find the module by itself. A release has the
// client as a module of its own: copy httpapi/client out of the release's archive, or name the folder
// where the archive or package has it.
//
//	go mod edit -replace hubcloud/httpapi/client=./hubcloud_1.0.0_linux_amd64/httpapi/client
//	go get hubcloud/httpapi/client
//
// In a checkout the client belongs to the module hubcloud:
//
//	go mod edit -require hubcloud@v0.0.0 -replace hubcloud=../hubcloud
//
// Then import "hubcloud/httpapi/client". Since the package depends on the standard library only,
// nothing else is downloaded. Every module that uses a module with such a directive needs the
// directive itself.
//
// # A first call
//
//	c, err := client.New(client.Config{BaseURL: "https://api.example.com/v1", APIKey: key})
//	if err != nil { … }
//	defer c.Close()
//	for hub, err := range c.Hubs(ctx, "") {
//		if err != nil { … }
//		fmt.Println(hub.ID, hub.Connection.Status)
//	}
//
// Lists are sequences that read further pages as the loop needs them; methods that end in Page read
// a single page. Every method takes a context, which bounds everything the method does: attempts,
// waits and streams.
//
// # Errors
//
// An error of the API is an *Error, with its type, status, message and request id. Branch on the
// type with errors.Is:
//
//	switch {
//	case errors.Is(err, client.ErrNotFound):   // not in this organization
//	case errors.Is(err, client.ErrHubOffline): // nothing was done; WaitOnline waits for the hub
//	}
//
// ErrProtocol means that the answer did not come from the API. All other errors come from the
// network or the context.
//
// Calls are retried as the contract's table of errors says: after 429 once Retry-After has passed;
// after 500, 502, 503 and 504 with exponential backoff and jitter; and after a failed connection.
// Other errors are not retried. A returned error has therefore persisted for a minute of attempts,
// unless Retry is configured otherwise.
//
// # Events
//
// Each hub has an ordered log of events, which the service keeps for its retention time, 24 hours
// by default. Client.Events ranges over the log:
//
//	for event, err := range c.Events(ctx, hubID, cursor) {
//		if client.IsGap(err) {
//			// events are missing: read the devices again, then continue
//		} else if err != nil {
//			return err // errors.Is(err, client.ErrResync): cannot continue, call c.Resync
//		}
//		handle(event)       // first process the event …
//		keep(event.Cursor)  // … then store its cursor, in the same transaction if there is one
//	}
//
// The sequence resumes by itself after lost connections, restarts of the service, and the end of a
// stream, which the service ends after a quarter of an hour by default. It yields each event once.
// A program that stops between `handle` and `keep` gets that one event again after a restart, and
// no other. A hub without events for the retention time leaves no cursor to resume from: OnPosition
// reports cursors that are not an event's.
//
// Client.Feed ranges over the events of all hubs of the organization in the same way. Its positions
// are FeedEvent.Position, not the events' cursors.
//
// To keep a copy of a hub's state, begin with Client.Resync, which returns the devices and the
// cursor to follow them from.
//
// # Commands
//
// A command is first accepted and has its outcome later. Client.Send returns when it is accepted;
// Client.SendAndWait also waits for the outcome:
//
//	command := client.Command{HubID: hub, DeviceID: 3, Key: "lock", Value: true}
//	sent, outcome, err := c.SendAndWait(ctx, command, 30*time.Second)
//	if errors.Is(err, client.ErrDiverged) {
//		// the lock reports outcome.Value: it is jammed
//	}
//
// Each command carries an idempotency key, the same in all attempts, so that the hub runs the
// command once. A program that must continue a command after its own restart creates the key with
// NewIdempotencyKey and stores it before sending.
//
// To wait for many commands, or to get the position from before another action, call
// Client.Position first, then Client.Send, then Client.Outcome.
//
// # Goroutines
//
// A Client is safe for concurrent use and has no goroutines of its own. A sequence runs in the
// goroutine that ranges over it, and closes what it opened when the loop ends for any reason.
// Client.Outcome starts two goroutines and waits for them before it returns.
package client
