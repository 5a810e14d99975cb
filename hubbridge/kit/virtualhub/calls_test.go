package virtualhub_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// Ids of devices of DemoDevices.
const (
	frontDoor = 1
	keypad    = 9
)

type params map[string]any

func commandParams(id string, device int, key string, value any) params {
	return params{"command_id": id, "device_id": device, "key": key, "endpoint": 0, "value": value}
}

// command sends a command to a hub and waits for the response.
func (c *cloud) command(
	t testing.TB, h *virtualhub.Hub, id string, device int, key string, value any,
) protocol.Response {
	t.Helper()
	return c.call(t, h, protocol.MethodChannelsCommand, commandParams(id, device, key, value))
}

// rejected fails the test unless r is an error of the given type with a message.
func rejected(t testing.TB, r protocol.Response, kind string) {
	t.Helper()
	if r.Error == nil || r.Error.Type != kind || r.Error.Message == "" {
		t.Errorf("response %s %+v, want error %s", r.Result, r.Error, kind)
	}
}

func result[T any](t testing.TB, r protocol.Response) (value T) {
	t.Helper()
	if r.Error != nil {
		t.Fatalf("response %+v, want a result", r.Error)
	}
	must(t, json.Unmarshal(r.Result, &value))
	return value
}

type channel struct {
	Key     string
	Status  string
	Value   any
	Desired any
}

type channelAnswer struct{ Channel channel }

type deviceAnswer struct {
	Device struct {
		ID       int64
		Name     string
		Channels []channel
	}
}

func (c *cloud) channel(t testing.TB, h *virtualhub.Hub, device int, key string) channel {
	t.Helper()
	d := result[deviceAnswer](
		t, c.call(t, h, protocol.MethodDevicesGet, params{"device_id": device}),
	)
	i := slices.IndexFunc(d.Device.Channels, func(ch channel) bool { return ch.Key == key })
	if i < 0 {
		t.Fatalf("device %d has no %s", device, key)
	}
	return d.Device.Channels[i]
}

// requestHub starts a hub that gives up commands after 200 ms, and makes the test parallel.
func (c *cloud) requestHub(t *testing.T, id string) *virtualhub.Hub {
	t.Parallel()
	return c.hub(t, id, func(cfg *virtualhub.Config) { cfg.GiveUp = 200 * time.Millisecond })
}

// becomes waits until a channel has a status and a value.
func (c *cloud) becomes(
	t testing.TB, h *virtualhub.Hub, device int, key, status string, value any,
) {
	t.Helper()
	var last channel
	defer func() {
		if t.Failed() {
			t.Logf("%s of %d is %+v", key, device, last)
		}
	}()
	streamstest.Eventually(t, key+" "+status, func() bool {
		last = c.channel(t, h, device, key)
		return last.Status == status && last.Value == value
	})
}

// call sends a request to a hub and waits for the response.
func (c *cloud) call(t testing.TB, h *virtualhub.Hub, method string, params any) protocol.Response {
	t.Helper()
	response := c.ask(t, h, method, params)
	select {
	case r := <-response:
		return r
	case <-time.After(timeout):
		t.Fatalf("no response to %s", method)
		return protocol.Response{}
	}
}

// ask sends a request to a hub.
func (c *cloud) ask(
	t testing.TB, h *virtualhub.Hub, method string, params any,
) <-chan protocol.Response {
	t.Helper()
	raw, err := json.Marshal(params)
	must(t, err)
	answer := make(chan protocol.Response, 2)
	c.mu.Lock()
	c.token++
	token := fmt.Sprintf("k3/%d", c.token)
	c.calls[strings.ReplaceAll(token, "/", ".")] = answer
	c.mu.Unlock()
	request, err := json.Marshal(protocol.Request{
		ID:        token + "-id",
		Token:     token,
		Method:    method,
		Params:    raw,
		TimeoutMS: 10000,
	})
	must(t, err)
	id := domain.HubID(h.ID())
	must(t, c.Conns.Shard(id).Publish(streams.RequestSubject(id), request))
	return answer
}
