// Package client is a Go client of the device-hub API: every route typed, calls that are repeated
// when that helps and never when it harms, hubs' events as a sequence to range over, and commands
// whose outcome can be waited for. It needs nothing but the standard library.
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
// Lists are sequences that read page after page as the loop goes on; the methods that end in Page
// read a single one. Every method takes a context, which bounds it wholly: tries, waits and
// streams.
//
// # Errors
//
// A refusal by the API is an *Error, with its type, status, message and request id. Branch on the
// type, with errors.Is:
//
//	switch {
//	case errors.Is(err, client.ErrNotFound):   // no such thing in this organization
//	case errors.Is(err, client.ErrHubOffline): // nothing was done; WaitOnline waits for the hub
//	}
//
// ErrProtocol says that what answered is not the API. Everything else is the network's or the
// context's.
//
// Calls are repeated as the contract's table of errors says: after 429 when its Retry-After has
// passed, after 500, 502, 503 and 504 with growing waits spread by chance, after a failed
// connection; no other refusal is. See Retry for bounds and exceptions. What an error says is
// therefore true after a minute of trying, unless Retry says otherwise.
//
// # Events
//
// Each hub has an ordered log of events, kept for a day. Client.Events ranges over it:
//
//	for event, err := range c.Events(ctx, hubID, cursor) {
//		if client.IsGap(err) {
//			// events are missing: read the devices anew, then go on
//		} else if err != nil {
//			return err // errors.Is(err, client.ErrResync): cannot go on from here, call c.Resync
//		}
//		handle(event)       // first deal with it …
//		keep(event.Cursor)  // … then keep its cursor, in the same transaction if there is one
//	}
//
// The sequence takes itself up again over lost connections, streams that the service ends after a
// quarter of an hour, and restarts. It gives each event once: a program that stops between `handle`
// and `keep` gets that one event again when it starts anew, and no other. A hub that says nothing
// for a day leaves nothing to keep: OnPosition tells the cursors that are no event's.
//
// To keep a copy of a hub's state, begin with Client.Resync, which gives the devices and the cursor
// to follow them from.
//
// # Commands
//
// A command is accepted first, and has its outcome later. Client.Send does the first,
// Client.SendAndWait both:
//
//	sent, outcome, err := c.SendAndWait(ctx, client.Command{HubID: hub, DeviceID: 3, Key: "lock", Value: true}, 30*time.Second)
//	if errors.Is(err, client.ErrDiverged) {
//		// the lock reports outcome.Value: it is jammed
//	}
//
// Each command carries an idempotency key, the same in all tries, so that the hub runs it once
// however often it had to be sent. A program that must go on with a command after its own restart
// makes the key itself, with NewIdempotencyKey, and keeps it before sending.
//
// To wait for many commands, or to have the position from before something else, take the parts:
// Client.Position before, Client.Send, Client.Outcome.
//
// # Goroutines
//
// A Client can be used by many goroutines at once, and has none of its own. A sequence runs in the
// goroutine that ranges over it, and whatever it opened is closed when the loop is left, however
// that happens. Client.Outcome starts two and ends them before it returns.
package client
