// Command generated runs a workflow with the client that oapi-codegen generates from openapi.yaml.
// It prints a line for each step and exits with 1 if a step fails. Its argument is the file of
// settings that the test writes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"generated/api"
)

type settings struct {
	Base, Key, NarrowKey, BurstKey         string
	Hub, FaultyHub, OfflineHub             string
	Lamp                                   int64
	ForeignCursor, UnknownSerial, Unlinked string
}

type workflow struct {
	settings
	*api.ClientWithResponses
	ctx context.Context
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w := &workflow{ctx: ctx}
	text, err := os.ReadFile(os.Args[1])
	must(err)
	must(json.Unmarshal(text, &w.settings))
	w.ClientWithResponses = w.client(w.Key)
	w.run()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func require(ok bool, format string, args ...any) {
	if !ok {
		must(fmt.Errorf(format, args...))
	}
}

func value[T any](v T, err error) T {
	must(err)
	return v
}

// client returns a client with a key; "" sends none.
func (w *workflow) client(key string) *api.ClientWithResponses {
	return value(api.NewClientWithResponses(w.Base, api.WithRequestEditorFn(
		func(_ context.Context, r *http.Request) error {
			if key != "" {
				r.Header.Set("Authorization", "Bearer "+key)
			}
			return nil
		})))
}

func (w *workflow) run() {
	w.lists()
	w.follow(w.command())
	w.pages()
	w.errors()
}

func (w *workflow) lists() {
	limit := 1
	sites := value(w.ListSitesWithResponse(w.ctx, &api.ListSitesParams{Limit: &limit}))
	require(sites.JSON200 != nil && len(sites.JSON200.Data) == 1, "sites: %s", sites.Body)
	hubs := value(w.ListHubsWithResponse(w.ctx, nil))
	require(hubs.JSON200 != nil && len(hubs.JSON200.Data) == 3, "hubs: %s", hubs.Body)
	hub := value(w.GetHubWithResponse(w.ctx, w.Hub))
	require(hub.JSON200 != nil && hub.JSON200.Firmware != nil, "hub: %s", hub.Body)
	devices := value(w.ListDevicesWithResponse(w.ctx, w.Hub))
	require(devices.JSON200 != nil && len(devices.JSON200.Data) > 1, "devices: %s", devices.Body)
	fmt.Println("lists")
}

// command sets the lamp's color and returns the position from before.
func (w *workflow) command() (cursor string) {
	page := value(w.ReadEventsWithResponse(w.ctx, w.Hub, nil))
	require(page.JSON200 != nil, "events: %s", page.Body)
	color := api.Color{Red: 255, Green: 160, Blue: 20}
	var commanded api.CommandValue
	must(commanded.FromColor(color))
	key := "color-" + fmt.Sprint(time.Now().UnixNano())
	sent := value(w.SendCommandWithResponse(
		w.ctx, w.Hub, w.Lamp, &api.SendCommandParams{IdempotencyKey: &key},
		api.Command{Key: api.CommandKeyColor, Value: commanded},
	))
	require(sent.JSON202 != nil, "command: %s", sent.Body)
	desired := value(sent.JSON202.Channel.Desired.AsObjectValue())
	require(desired["green"] == 160.0, "command: %s", sent.Body)
	fmt.Println("command")
	return page.JSON200.NextCursor
}

// follow streams until the lamp reports a color.
func (w *workflow) follow(cursor string) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	response := value(w.StreamEvents(ctx, w.Hub, &api.StreamEventsParams{LastEventID: &cursor}))
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event api.Event
		must(json.Unmarshal([]byte(data), &event))
		observed, ok := value(event.ValueByDiscriminator()).(api.ChannelObservedEvent)
		if ok && observed.Data.Key == "color" {
			color := value(observed.Data.Value.AsObjectValue())
			require(color["red"] == 255.0 && color["blue"] == 20.0, "observed: %s", data)
			fmt.Println("stream")
			return
		}
	}
	must(fmt.Errorf("the stream ended: %v", lines.Err()))
}

func (w *workflow) pages() {
	limit, after := 1, ""
	for count := 0; ; count++ {
		params := &api.ReadEventsParams{Limit: &limit}
		if after != "" {
			params.After = &after
		}
		page := value(w.ReadEventsWithResponse(w.ctx, w.Hub, params))
		require(page.JSON200 != nil, "events: %s", page.Body)
		for _, event := range page.JSON200.Data {
			value(event.ValueByDiscriminator())
		}
		if after = page.JSON200.NextCursor; !page.JSON200.HasMore {
			require(count > 0, "got only %d pages", count)
			fmt.Println("pages")
			return
		}
	}
}

func (w *workflow) errors() {
	show := func(err *api.Error) {
		require(err != nil, "got no error")
		require(err.Error.RequestId != "", "an error without a request id")
		fmt.Println("error", err.Error.Type)
	}
	show(value(w.CreateSiteWithResponse(w.ctx, nil, api.SiteChange{Name: ""})).JSON400)
	show(value(w.client("").ListSitesWithResponse(w.ctx, nil)).JSON401)
	show(value(w.client(w.NarrowKey).CreateSiteWithResponse(
		w.ctx, nil, api.SiteChange{Name: "x"})).JSON403)
	members := value(w.ListMembersWithResponse(w.ctx, nil))
	require(members.JSON200 != nil, "members: %s", members.Body)
	show(value(w.RemoveMemberWithResponse(w.ctx, members.JSON200.Data[0].Id)).JSON403)
	show(value(w.GetHubWithResponse(w.ctx, "hub-0000-0000-0000")).JSON404)
	show(value(w.AddHubWithResponse(w.ctx, nil, api.HubAddition{
		Serial: w.UnknownSerial, SiteId: w.Unlinked})).JSON422)
	show(value(w.ReadEventsWithResponse(
		w.ctx, w.Hub, &api.ReadEventsParams{After: &w.ForeignCursor})).JSON410)

	key := "conflict-" + fmt.Sprint(time.Now().UnixNano())
	first := value(w.CreateSiteWithResponse(
		w.ctx, &api.CreateSiteParams{IdempotencyKey: &key}, api.SiteChange{Name: "one"}))
	require(first.JSON201 != nil, "site: %s", first.Body)
	show(value(w.CreateSiteWithResponse(
		w.ctx, &api.CreateSiteParams{IdempotencyKey: &key}, api.SiteChange{Name: "two"})).JSON409)

	lock := func(hub string, device int64) *api.SendCommandResponse {
		var on api.CommandValue
		must(on.FromCommandValue0(true))
		return value(w.SendCommandWithResponse(
			w.ctx, hub, device, nil, api.Command{Key: api.CommandKeyLock, Value: on}))
	}
	show(lock(w.FaultyHub, 1).JSON422)
	show(lock(w.FaultyHub, 2).JSON503)
	show(lock(w.FaultyHub, 3).JSON502)
	show(lock(w.FaultyHub, 4).JSON504)
	show(lock(w.OfflineHub, 1).JSON503)

	burst := w.client(w.BurstKey)
	for range 1000 {
		if answer := value(burst.ListSitesWithResponse(w.ctx, nil)); answer.JSON429 != nil {
			require(answer.HTTPResponse.Header.Get("Retry-After") != "", "no Retry-After")
			show(answer.JSON429)
			return
		}
	}
	must(fmt.Errorf("1000 requests were not limited"))
}
