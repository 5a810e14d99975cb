// Command generated runs a shorter workflow with the client that ogen generates from the OpenAPI 3.2
// document. It prints a line for each step and exits with 1 if a step fails. Its argument is the file
// of settings that the test writes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"generated/api"
)

type settings struct {
	Base, Key, Hub, OfflineHub string
	Lamp                       int64
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var s settings
	must(json.Unmarshal(value(os.ReadFile(os.Args[1])), &s))
	c := value(api.NewClient(s.Base, key(s.Key)))

	sites := as[api.SiteListHeaders](c.ListSites(ctx, api.ListSitesParams{Limit: api.NewOptInt(1)}))
	hub := as[api.GetHubOKHeaders](c.GetHub(ctx, api.GetHubParams{HubID: api.HubID(s.Hub)}))
	devices := as[api.DeviceListHeaders](c.ListDevices(ctx, api.ListDevicesParams{HubID: api.HubID(s.Hub)}))
	require(
		len(sites.Response.Data) == 1 && string(hub.Response.ID) == s.Hub &&
			len(devices.Response.Data) > 1, "lists",
	)

	page := as[api.EventPageHeaders](c.ReadEvents(ctx, api.ReadEventsParams{HubID: api.HubID(s.Hub)}))
	sent := as[api.AcceptedCommandHeaders](c.SendCommand(
		ctx, &api.Command{
			Key:   api.CommandKeyColor,
			Value: api.NewColorCommandValue(api.Color{Red: 1, Green: 160, Blue: 20}),
		},
		api.SendCommandParams{HubID: api.HubID(s.Hub), DeviceID: s.Lamp},
	))
	require(string(sent.Response.Channel.Desired.ObjectValue["green"]) == "160", "command")

	stream := as[api.StreamEventsOKRawTextEventStream](c.StreamEvents(ctx, api.StreamEventsParams{
		HubID: api.HubID(s.Hub), LastEventID: api.NewOptCursor(page.Response.NextCursor),
	}))
	lines, observed := bufio.NewScanner(stream.Response.Body), false
	for !observed && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var event api.Event
			must(event.UnmarshalJSON([]byte(data)))
			report := event.ChannelObservedEvent.Data
			observed = report.Key == "color" && string(report.Value.ObjectValue["red"]) == "1"
		}
	}
	require(observed, "stream")

	after := api.OptCursor{}
	for count, more := 0, true; more; count++ {
		page := as[api.EventPageHeaders](c.ReadEvents(
			ctx, api.ReadEventsParams{HubID: api.HubID(s.Hub), Limit: api.NewOptInt(1), After: after},
		))
		after, more = api.NewOptCursor(page.Response.NextCursor), page.Response.HasMore && count < 3
	}
	require(after.IsSet(), "pages")

	unknown := as[api.NotFoundHeaders](c.GetHub(ctx, api.GetHubParams{HubID: "hub-none-0000-0000"}))
	require(unknown.Response.Error.Type == "not_found", "error not_found")
	offline := as[api.HubOfflineOrUnavailableHeaders](
		c.ListDevices(ctx, api.ListDevicesParams{HubID: api.HubID(s.OfflineHub)}),
	)
	require(offline.Response.Error.Type == "hub_offline", "error hub_offline")
}

// key is the source of the API key.
type key string

func (k key) ApiKey(context.Context, api.OperationName) (api.ApiKey, error) {
	return api.ApiKey{Token: string(k)}, nil
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func value[T any](v T, err error) T {
	must(err)
	return v
}

// as returns an answer as the type that the step expects.
func as[T any](answer any, err error) *T {
	must(err)
	got, ok := answer.(*T)
	if !ok {
		must(fmt.Errorf("got the answer %+v, want a %T", answer, got))
	}
	return got
}

// require prints the step if it has succeeded.
func require(ok bool, step string) {
	if !ok {
		must(fmt.Errorf("%s failed", step))
	}
	fmt.Println(step)
}
