package hubbridge_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/rpc"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// wholeHub is a virtual hub that has enrolled with an installation, belongs to its organization and
// connects over MQTT.
type wholeHub struct {
	*virtualhub.Hub
	i  *testBridge
	id domain.HubID
	// devices and commands call the hub with the timeout of the test.
	devices  *rpc.Devices
	commands *commands.Commands
}

// wholeHub starts a virtual hub and waits until it is online.
func (i *testBridge) wholeHub(
	timeout time.Duration, changes ...func(*virtualhub.Config),
) *wholeHub {
	i.t.Helper()
	enrolment, err := identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: i.Authority, Directory: i.Directory,
		Broker: func() string { return "mqtts://" + i.MQTTAddr }, Logger: streamstest.Logger(),
	})
	if err != nil {
		i.t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request protocol.CertificateRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			i.t.Errorf("enrolment: %v", err)
		}
		certificate, err := enrolment.Issue(r.Context(), request)
		if err != nil {
			i.t.Errorf("enrolment: %v", err)
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(certificate)
	}))
	i.t.Cleanup(server.Close)

	h := &wholeHub{i: i, id: "hub-whol-0000-0001"}
	secret := "the hub's enrolment secret"
	hash := sha256.Sum256([]byte(secret))
	if err := i.Directory.RegisterHub(
		i.t.Context(), installationtest.Operator, h.id, hash[:],
	); err != nil {
		i.t.Fatal(err)
	}
	i.AddHub(i.t, h.id)
	cfg := virtualhub.Config{
		EnrollURL:  server.URL,
		Serial:     h.id.Serial(),
		Secret:     secret,
		Quiet:      true,
		BackoffMin: 20 * time.Millisecond,
		Logger:     streamstest.Logger(),
	}
	for _, change := range changes {
		change(&cfg)
	}
	if h.Hub, err = virtualhub.New(cfg); err != nil {
		i.t.Fatal(err)
	}
	stopHub := streamstest.Run(i.t, "virtual hub", h.Run)
	caller, err := rpc.NewCaller(
		i.Conns, i.view, rpc.Config{Timeout: timeout, Logger: streamstest.Logger()},
	)
	if err != nil {
		i.t.Fatal(err)
	}
	h.devices = rpc.NewDevices(caller, nil, nil)
	keys, err := idempotency.New(
		i.Conns, idempotency.Config{ReplicaID: "r1", Logger: streamstest.Logger()},
	)
	if err != nil {
		i.t.Fatal(err)
	}
	h.commands, err = commands.New(i.HubLogs, h.devices, commands.Config{
		Keys: keys, HubTimeout: timeout, Logger: streamstest.Logger(),
	})
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		h.commands.Close(ctx)
		caller.Close()
		stopHub()
		if err := h.Close(); err != nil {
			i.t.Error(err)
		}
	})
	h.awaitOnline(true)
	return h
}

// awaitOnline waits until the presence view reports the hub as online, or as offline if online is
// false.
func (h *wholeHub) awaitOnline(online bool) {
	h.i.t.Helper()
	streamstest.Eventually(
		h.i.t, fmt.Sprintf("hub %s: online is %t", h.id, online),
		func() bool { return h.i.view.Online(h.id) == online },
	)
}

// send sends a command to the hub.
func (h *wholeHub) send(
	device int64, channel, value, idempotencyKey string,
) (domain.Channel, error) {
	h.i.t.Helper()
	return h.commands.Send(h.i.t.Context(), installationtest.Operator, domain.Command{
		OrgID: h.i.OrgID, HubID: h.id, DeviceID: device, Key: channel,
		Value:          json.RawMessage(value),
		IdempotencyKey: idempotencyKey,
	})
}

// wantCode fails the test unless err has the code.
func wantCode(t testing.TB, what string, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

// events returns the types of the events in the hub's log, in order.
func (h *wholeHub) events() (types []string) {
	h.i.t.Helper()
	for after := ""; ; {
		page, err := h.i.HubLogs.Page(h.i.t.Context(), h.id, after, 500)
		if err != nil {
			h.i.t.Fatal(err)
		}
		for _, e := range page.Events {
			var event struct{ Type string }
			if err := json.Unmarshal(e.Envelope, &event); err != nil {
				h.i.t.Fatal(err)
			}
			types = append(types, event.Type)
		}
		if after = page.Next; !page.HasMore {
			return types
		}
	}
}
