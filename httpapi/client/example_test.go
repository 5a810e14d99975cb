package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/httpapi/client"
)

// List the hubs of the organization.
func ExampleClient_Hubs() {
	c, _, stop := service() // client.New(client.Config{BaseURL: …, APIKey: …})
	defer stop()
	for hub, err := range c.Hubs(context.Background(), "") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(hub.ID, *hub.Name, hub.Connection.Status)
	}
	// Output: hub-7k2m-q4xd-93ta Lobby online
}

// Branch on the type of an error.
func ExampleError() {
	c, _, stop := service()
	defer stop()
	_, err := c.Site(context.Background(), "nowhere")
	if errors.Is(err, client.ErrNotFound) {
		fmt.Println("no such site")
	}
	if apiErr, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(apiErr.Status, apiErr.Message, apiErr.RequestID)
	}
	// Output:
	// no such site
	// 404 no such thing 01J
}

// Clear a name and move a hub in one call.
func ExampleHubUpdate() {
	c, _, stop := service()
	defer stop()
	_, err := c.UpdateHub(
		context.Background(), "hub-aaaa-aaaa-aaaa",
		client.HubUpdate{Name: client.Clear(), SiteID: "0195"},
	)
	fmt.Println(err)
	// Output: not_found: no such thing (status 404, request 01J)
}

// Lock a door and check that it is locked.
func ExampleClient_SendAndWait() {
	c, _, stop := service()
	defer stop()
	command := client.Command{HubID: "hub-7k2m-q4xd-93ta", DeviceID: 1, Key: "lock", Value: true}
	sent, outcome, err := c.SendAndWait(context.Background(), command, 30*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("accepted:", sent.Channel.Status)
	fmt.Println("outcome:", outcome.Status, outcome.Value)
	// Output:
	// accepted: pending
	// outcome: synchronized true
}

// A jammed lock is an error that cannot be overlooked.
func ExampleClient_SendAndWait_diverged() {
	c, house, stop := service()
	defer stop()
	house.jammed = true
	command := client.Command{HubID: "hub-7k2m-q4xd-93ta", DeviceID: 1, Key: "lock", Value: true}
	_, outcome, err := c.SendAndWait(context.Background(), command, 30*time.Second)
	if errors.Is(err, client.ErrDiverged) {
		locked, _ := outcome.Value.Bool()
		fmt.Println("jammed; locked:", locked)
	}
	// Output: jammed; locked: false
}

// Send several commands, then wait for them. Read the position once, before the first.
func ExampleClient_Outcome() {
	c, _, stop := service()
	defer stop()
	ctx, hub := context.Background(), "hub-7k2m-q4xd-93ta"
	position, err := c.Position(ctx, hub)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Store the key first: after a restart the same command can be sent again.
	key := client.NewIdempotencyKey()
	sent, err := c.Send(
		ctx, client.Command{HubID: hub, DeviceID: 1, Key: "lock", Value: true, IdempotencyKey: key},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := c.Outcome(ctx, sent, position, 30*time.Second)
	fmt.Println(outcome.Status, err)
	// Output: synchronized <nil>
}

// Follow a hub from a stored cursor, and store the cursor of each event after processing it.
func ExampleClient_Events() {
	c, house, stop := service()
	defer stop()
	house.happens("channel.observed", `{"key":"lock","endpoint":0,"value":true}`)
	house.happens("hub.events_skipped", `{"from":17,"to":42}`)
	house.happens("channel.observed", `{"key":"lock","endpoint":0,"value":false}`)

	kept := "" // the cursor of the last processed event; "" at first
	for event, err := range c.Events(context.Background(), "hub-7k2m-q4xd-93ta", kept) {
		if client.IsGap(err) {
			fmt.Println(event.Cursor, "gap:", err) // read the devices again
		} else if err != nil {
			fmt.Println(err)
			return
		}
		if event.Type == client.EventChannelObserved {
			var observed client.ChannelObserved
			if err := event.Decode(&observed); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(event.Cursor, observed.Key, observed.Value)
		}
		if kept = event.Cursor; kept == "c3" {
			break // a program continues until its context ends
		}
	}
	// Output:
	// c1 lock true
	// c2 gap: events 17 to 42 of hub hub-7k2m-q4xd-93ta could not be delivered
	// c3 lock false
}

// When events cannot be resumed, start again from the devices.
func ExampleClient_Resync() {
	c, house, stop := service()
	defer stop()
	for range 3 {
		house.happens("channel.observed", `{"key":"lock","endpoint":0,"value":true}`)
	}
	house.expired = 2
	ctx, hub := context.Background(), "hub-7k2m-q4xd-93ta"
	kept := "c1"
	for _, err := range c.Events(ctx, hub, kept) {
		if errors.Is(err, client.ErrResync) {
			fmt.Println("events after", kept, "are lost")
			break
		}
	}
	snapshot, err := c.Resync(ctx, hub)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(snapshot.Devices), "device; go on after", snapshot.Cursor)
	// Output:
	// events after c1 are lost
	// 1 device; go on after c3
}
