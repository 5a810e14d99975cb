package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hubcloud/httpapi/client"
)

// sendCommand is the name of the tool that changes something.
const sendCommand = "send_command"

// maxWait is how long send_command may wait for an outcome.
const maxWait = time.Minute

type (
	siteArguments struct {
		SiteID string `json:"site_id,omitempty" jsonschema:"only hubs at this site"`
		listArguments
	}
	hubArguments struct {
		HubID string `json:"hub_id" jsonschema:"id of the hub, such as hub-7k2m-q4xd-93ta"`
	}
	deviceArguments struct {
		hubArguments
		DeviceID int64 `json:"device_id" jsonschema:"id of the device, a number that is unique in the hub"`
	}
	devicesArguments struct {
		hubArguments
		listArguments
	}
	stateArguments struct {
		SiteID    string `json:"site_id,omitempty" jsonschema:"only at this site"`
		HubID     string `json:"hub_id,omitempty" jsonschema:"only of this hub"`
		Key       string `json:"key,omitempty" jsonschema:"only channels with this key, such as lock, temperature, battery, contact"`
		Value     *bool  `json:"value,omitempty" jsonschema:"only channels whose value is this boolean; a lock's false is unlocked"`
		Status    string `json:"status,omitempty" jsonschema:"only unknown, synchronized, pending, diverged or failed"`
		Available *bool  `json:"available,omitempty" jsonschema:"false: only channels that their hub cannot reach"`
		listArguments
	}
	eventArguments struct {
		SiteIDs []string `json:"site_ids,omitempty" jsonschema:"only hubs at these sites"`
		HubIDs  []string `json:"hub_ids,omitempty" jsonschema:"only these hubs"`
		Types   []string `json:"types,omitempty" jsonschema:"only these types, such as channel.observed, or prefixes, such as device.*"`
		Since   string   `json:"since,omitempty" jsonschema:"begin with events since this time, such as 2026-01-02T03:04:05Z, or so long ago, such as 15m"`
		Last    *int     `json:"last,omitempty" jsonschema:"the newest events, 1 to 50, instead of those since a time"`
		After   string   `json:"after,omitempty" jsonschema:"next_cursor of the answer before, instead of since or last"`
		Limit   *int     `json:"limit,omitempty" jsonschema:"most events of the answer, 1 to 50; 20 by default"`
	}
	commandArguments struct {
		deviceArguments
		Key      string `json:"key" jsonschema:"key of a writable channel, such as lock, switch, level, heating_setpoint, mode"`
		Endpoint int    `json:"endpoint,omitempty" jsonschema:"endpoint of the channel, 0 unless the device has several with the key"`
		Value    any    `json:"value" jsonschema:"the new value: true or false, a number, a name, or an object for color"`

		WaitSeconds    int    `json:"wait_seconds,omitempty" jsonschema:"wait so long for what the device reports, 0 to 60; 0 does not wait"`
		IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"a text of your choice: the same command with the same text runs only once within 24 hours"`
	}
)

// addReaders adds the tools that change nothing.
func addReaders(server *mcp.Server, cfg Config) {
	add(server, cfg, "list_sites", "Lists the buildings, oldest first.", func(
		ctx context.Context, api *client.Client, in listArguments,
	) (any, error) {
		query, err := in.page()
		if err != nil {
			return nil, err
		}
		page, err := api.SitesPage(ctx, query)
		return answerOf(page, err, func(s client.Site) string { return s.ID })
	})
	add(server, cfg, "list_hubs", "Lists hubs by id, with names and whether they are online.", func(
		ctx context.Context, api *client.Client, in siteArguments,
	) (any, error) {
		query, err := in.page()
		if err != nil {
			return nil, err
		}
		page, err := api.HubsPage(ctx, in.SiteID, query)
		return answerOf(page, err, func(h client.ListedHub) string { return h.ID })
	})
	add(server, cfg, "get_hub", "Reads a hub: connection, firmware, network.", func(
		ctx context.Context, api *client.Client, in hubArguments,
	) (any, error) {
		return api.Hub(ctx, in.HubID)
	})
	add(server, cfg, "list_devices", "Asks a hub that is online for its devices and their channels, "+
		"without values.", listDevices)
	add(server, cfg, "get_device", "Asks a hub that is online for one device, with the values of its "+
		"channels now.", func(
		ctx context.Context, api *client.Client, in deviceArguments,
	) (any, error) {
		return api.Device(ctx, in.HubID, in.DeviceID)
	})
	add(server, cfg, "list_states", "Lists what channels last reported, of all hubs, also those that "+
		"are offline: which doors are unlocked?", func(
		ctx context.Context, api *client.Client, in stateArguments,
	) (any, error) {
		query, err := in.page()
		if err != nil {
			return nil, err
		}
		page, err := api.StatesPage(ctx, client.StateFilter{
			SiteID: in.SiteID, HubID: in.HubID, Key: in.Key, Value: in.Value,
			Status: client.ChannelStatus(in.Status), Available: in.Available,
		}, query)
		return answerOf(page, err, func(s client.State) string { return s.ID })
	})
	add(server, cfg, "list_events", "Lists events of all hubs, oldest first within the answer: what "+
		"happened? They are kept for 24 hours by default. Read on with after=next_cursor while "+
		"has_more is true.", listEvents)
	add(server, cfg, "needs_attention", "Lists what is wrong, the most urgent first: smoke, leaks, "+
		"jammed locks, commands without effect, devices and hubs that are offline, low batteries. "+
		"While has_more is true, ask site by site.", needsAttention)
}

// addCommands adds the tool that commands devices.
func addCommands(server *mcp.Server, cfg Config) {
	add(server, cfg, sendCommand, "Commands a device: this may unlock a real door. The hub accepts at "+
		"once, the device reports the outcome later; status synchronized means done, diverged that "+
		"the device reports another value, pending that it has not reported yet.", func(
		ctx context.Context, api *client.Client, in commandArguments,
	) (any, error) {
		wait := time.Duration(in.WaitSeconds) * time.Second
		if wait < 0 || wait > maxWait {
			return nil, fmt.Errorf("wait_seconds %d: must be 0 to 60", in.WaitSeconds)
		}
		command := client.Command{
			HubID: in.HubID, DeviceID: in.DeviceID, Key: in.Key, Endpoint: in.Endpoint,
			Value: in.Value, IdempotencyKey: in.IdempotencyKey,
		}
		if wait == 0 {
			return api.Send(ctx, command)
		}
		sent, outcome, err := api.SendAndWait(ctx, command, wait)
		if outcome.Status == "" { // the command failed before it had an outcome
			return nil, err
		}
		return struct {
			client.Sent
			Outcome client.Outcome `json:"outcome"`
		}{sent, outcome}, nil
	})
}

// listDevices returns a page of a hub's devices, which the API does not divide.
func listDevices(ctx context.Context, api *client.Client, in devicesArguments) (any, error) {
	query, err := in.page()
	if err != nil {
		return nil, err
	}
	after, err := strconv.ParseInt("0"+in.StartingAfter, 10, 64)
	if err != nil {
		return nil, errors.New("starting_after: must be next_starting_after of the answer before")
	}
	devices, err := api.Devices(ctx, in.HubID)
	devices = slices.DeleteFunc(devices, func(d client.ListedDevice) bool {
		return in.StartingAfter != "" && d.ID <= after
	})
	slices.SortFunc(devices, func(a, b client.ListedDevice) int { return cmp.Compare(a.ID, b.ID) })
	n := min(len(devices), query.Limit)
	return answerOf(
		client.Page[client.ListedDevice]{Data: devices[:n], HasMore: n < len(devices)}, err,
		func(d client.ListedDevice) string { return strconv.FormatInt(d.ID, 10) },
	)
}

// eventsAnswer is a page of events, as the API sends them.
type eventsAnswer struct {
	Data       []json.RawMessage `json:"data"`
	NextCursor string            `json:"next_cursor"`
	HasMore    bool              `json:"has_more"`
}

// listEvents returns a page of the organization's feed.
func listEvents(ctx context.Context, api *client.Client, in eventArguments) (any, error) {
	last, err := itemCount("last", in.Last, 0)
	if err != nil {
		return nil, err
	}
	limit, err := itemCount("limit", in.Limit, cmp.Or(last, defaultLimit))
	if err != nil {
		return nil, err
	}
	query := client.EventQuery{After: in.After, Last: last, Limit: limit}
	if ago, err := time.ParseDuration(in.Since); err == nil && ago >= 0 {
		query.Since = time.Now().Add(-ago)
	} else if in.Since != "" {
		if query.Since, err = time.Parse(time.RFC3339, in.Since); err != nil {
			return nil, fmt.Errorf(
				"since %q: must be a time such as 2026-01-02T03:04:05Z, or a duration such as 15m",
				in.Since,
			)
		}
	}
	events, err := api.FeedPage(ctx, client.FeedFilter{
		SiteIDs: in.SiteIDs, HubIDs: in.HubIDs, Types: in.Types,
	}, query)
	if err != nil {
		return nil, err
	}
	answer := eventsAnswer{
		Data: []json.RawMessage{}, NextCursor: events.NextCursor, HasMore: events.HasMore,
	}
	for _, event := range events.Data {
		answer.Data = append(answer.Data, event.Raw)
	}
	return answer, nil
}
