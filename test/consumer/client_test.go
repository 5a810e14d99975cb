package consumer

import (
	"errors"
	"testing"
	"time"

	"hubcloud/httpapi/client"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// The devices of the hub under test, by id.
const (
	lock = 1 + iota
	thermostat
	bulb
	switches
)

func newHub(t *testing.T, target *harness.Target, tenant *harness.Tenant) *virtualhub.Hub {
	return target.For(t).
		VirtualHub(tenant, virtualhub.Config{GiveUp: time.Second, Devices: []virtualhub.DeviceSpec{
			{
				Kind: "lock",
				Name: "Front door",
			}, {Kind: "thermostat", Name: "Hall"}, {Kind: "color_bulb", Name: "Lamp"},
			{Kind: "switch", Name: "Kitchen", Gangs: 2},
		}})
}

// everyRoute calls every route through the Go client.
func everyRoute(t *testing.T, target *harness.Target) {
	tenant := target.Tenant("Consumer")

	t.Run("sites and hubs", func(t *testing.T) {
		t.Parallel()
		c, ctx := clientOf(t, tenant, client.Retry{}), soon(t)
		site := check[client.Site](t)(c.CreateSite(ctx, "Annex"))
		if site = check[client.Site](t)(
			c.RenameSite(ctx, site.ID, "Annexe"),
		); site.Name != "Annexe" {
			t.Errorf("renamed site: got %+v, want the name Annexe", site)
		}
		hub := newHub(t, target, tenant)
		moved := check[client.Hub](t)(
			c.UpdateHub(
				ctx, hub.ID(), client.HubUpdate{Name: client.SetTo("Attic"), SiteID: site.ID},
			),
		)
		if moved.SiteID != site.ID || moved.Name == nil || *moved.Name != "Attic" ||
			moved.Firmware == nil ||
			moved.Network == nil {
			t.Errorf(
				"moved hub: got %+v, want name Attic, site %s, firmware and network", moved,
				site.ID,
			)
		}
		if cleared := check[client.Hub](t)(c.UpdateHub(ctx, hub.ID(), client.HubUpdate{
			Name: client.Clear(),
		})); cleared.Name != nil ||
			cleared.SiteID != site.ID {
			t.Errorf("cleared name: got %+v, want no name and site %s", cleared, site.ID)
		}
		seen := 0
		for listed, err := range c.Hubs(ctx, site.ID) {
			if err != nil || listed.ID != hub.ID() || listed.Connection.Status != client.HubOnline {
				t.Errorf("listed hub: got %+v, %v, want %s online", listed, err, hub.ID())
			}
			seen++
		}
		if got := check[client.Site](t)(c.Site(ctx, site.ID)); seen != 1 || got.HubCount != 1 {
			t.Errorf("%d hubs listed, %+v", seen, got)
		}
		if _, err := c.AddHub(ctx, client.HubAddition{
			Serial: "HUB-0000-0000-0000", SiteID: site.ID,
		}); !errors.Is(err, client.ErrHubNotAddable) {
			t.Error(err)
		}
		if err := c.ResetLink(ctx, hub.ID()); err != nil {
			t.Error(err)
		}
		hub.Restart()
		if err := c.WaitOnline(ctx, hub.ID()); err != nil {
			t.Error(err)
		}
	})

	t.Run("devices", func(t *testing.T) {
		t.Parallel()
		c, ctx := clientOf(t, tenant, client.Retry{}), soon(t)
		hub := newHub(t, target, tenant)
		if devices := check[[]client.ListedDevice](t)(c.Devices(ctx, hub.ID())); len(
			devices,
		) != 4 ||
			devices[0].Name != "Front door" {
			t.Errorf("devices: got %+v, want 4 that begin with Front door", devices)
		}
		label := check[client.DeviceLabel](t)(
			c.UpdateDevice(
				ctx, hub.ID(), thermostat,
				client.DeviceUpdate{Name: client.SetTo("Dial"), Room: client.SetTo("Hall")},
			),
		)
		got := check[client.Device](t)(c.Device(ctx, hub.ID(), thermostat))
		if label.Name != "Dial" || got.Name != "Dial" || got.Room == nil || *got.Room != "Hall" {
			t.Errorf("label: got %+v, then %+v, want Dial in Hall", label, got)
		}
		setpoint, ok := got.Channel("heating_setpoint", 0)
		if _, high, bounded := setpoint.Capabilities.Bounds(); !ok || !bounded || high <= 0 ||
			!setpoint.Writable {
			t.Errorf("setpoint: got %+v, want it writable with bounds", setpoint)
		}
		if window := check[client.Window](t)(
			c.OpenPairing(ctx, hub.ID(), "12345"),
		); window != (client.Window{
			Status: "open", ExpiresIn: 120,
		}) {
			t.Errorf("pairing window: got %+v, want open for 120 s", window)
		}
		if err := c.ClosePairing(ctx, hub.ID()); err != nil {
			t.Error(err)
		}
		check[client.Window](t)(c.OpenRemoval(ctx, hub.ID()))
		if err := c.CloseRemoval(ctx, hub.ID()); err != nil {
			t.Error(err)
		}
		if err := c.ForgetDevice(ctx, hub.ID(), lock); !errors.Is(err, client.ErrInvalidRequest) {
			t.Error(err)
		}
		harness.Must(t, hub.Unreachable(lock))
		if err := c.ForgetDevice(ctx, hub.ID(), lock); err != nil {
			t.Error(err)
		}
		if _, err := c.Device(ctx, hub.ID(), lock); !errors.Is(err, client.ErrNotFound) {
			t.Error(err)
		}
	})

	t.Run("commands", func(t *testing.T) {
		t.Parallel()
		commands(
			t, clientOf(t, tenant, client.Retry{MaxElapsed: 2 * time.Second}),
			newHub(t, target, tenant),
		)
	})

	t.Run("people", func(t *testing.T) {
		t.Parallel()
		c, ctx := clientOf(t, tenant, client.Retry{}), soon(t)
		for member, err := range c.Members(ctx) {
			if err != nil || member.Role != client.RoleOwner {
				t.Errorf("member: got %+v, %v, want the owner", member, err)
			}
			if err := c.RemoveMember(ctx, member.ID); !errors.Is(err, client.ErrForbidden) {
				t.Error(err)
			}
			if _, err := c.ChangeRole(ctx, member.ID, client.RoleAdmin); !errors.Is(
				err, client.ErrForbidden,
			) {
				t.Error(err)
			}
			if got := check[client.Member](t)(c.Member(ctx, member.ID)); got != member {
				t.Errorf("%+v, listed as %+v", got, member)
			}
		}
		invitation := check[client.Invitation](t)(
			c.Invite(ctx, "ann@example.com", client.RoleAdmin),
		)
		listed := 0
		for i, err := range c.Invitations(ctx) {
			if err != nil || i != invitation || i.Status != "pending" {
				t.Errorf("invitation: got %+v, %v, want %+v pending", i, err, invitation)
			}
			listed++
		}
		if err := c.RevokeInvitation(ctx, invitation.ID); err != nil || listed != 1 {
			t.Errorf("%d listed, %v", listed, err)
		}
		if err := c.RevokeInvitation(ctx, invitation.ID); !errors.Is(err, client.ErrNotFound) {
			t.Error(err)
		}
	})
}

// commands sends commands with every outcome and checks the outcomes.
func commands(t *testing.T, c *client.Client, hub *virtualhub.Hub) {
	ctx := soon(t)
	send := func(device int64, key string, endpoint int, value any) (client.Outcome, error) {
		_, outcome, err := c.SendAndWait(
			ctx,
			client.Command{
				HubID:    hub.ID(),
				DeviceID: device,
				Key:      key,
				Endpoint: endpoint,
				Value:    value,
			},
			20*time.Second,
		)
		return outcome, err
	}
	for _, tt := range []struct {
		device   int64
		key      string
		endpoint int
		value    any
	}{
		{lock, "lock", 0, false}, {lock, "lock", 0, true},
		{thermostat, "heating_setpoint", 0, 20.0}, {thermostat, "mode", 0, "heat"},
		{bulb, "color", 0, client.Color{Red: 1, Green: 2, Blue: 3}}, {switches, "switch", 2, true},
	} {
		if outcome, err := send(tt.device, tt.key, tt.endpoint, tt.value); err != nil ||
			outcome.Status != client.StatusSynchronized ||
			outcome.Event == nil {
			t.Errorf("%+v: got %+v, %v, want it synchronized by an event", tt, outcome, err)
		}
	}
	hub.Jam(lock)
	if outcome, err := send(lock, "lock", 0, false); !errors.Is(err, client.ErrDiverged) ||
		outcome.Value.String() != "true" {
		t.Errorf("jammed lock: got %+v, %v", outcome, err)
	}
	hub.Unjam(lock)
	harness.Must(t, hub.Unreachable(thermostat))
	if outcome, err := send(thermostat, "heating_setpoint", 0, 21); !errors.Is(
		err, client.ErrFailed,
	) ||
		outcome.Status != client.StatusFailed {
		t.Errorf("unreachable device: got %+v, %v", outcome, err)
	}

	// A restarted program repeats the command: its outcome is older than the program's cursor.
	command := client.Command{
		HubID:          hub.ID(),
		DeviceID:       lock,
		Key:            "lock",
		Value:          true,
		IdempotencyKey: client.NewIdempotencyKey(),
	}
	if _, _, err := c.SendAndWait(ctx, command, time.Minute); err != nil {
		t.Error(err)
	}
	if _, outcome, err := c.SendAndWait(ctx, command, time.Minute); err != nil ||
		outcome.Event != nil {
		t.Errorf("repeated command: got %+v, %v", outcome, err)
	}
	command.Value = false
	if _, err := c.Send(ctx, command); !errors.Is(err, client.ErrIdempotencyConflict) {
		t.Error(err)
	}

	for want, command := range map[client.ErrorType]client.Command{
		client.ErrInvalidRequest: {HubID: hub.ID(), DeviceID: lock, Key: "lock", Value: "shut"},
		client.ErrNotFound:       {HubID: hub.ID(), DeviceID: 99, Key: "lock", Value: true},
	} {
		if _, err := c.Send(ctx, command); !errors.Is(err, want) {
			t.Errorf("%+v: got error %v, want %v", command, err, want)
		}
	}
	hub.RejectCommands(true)
	if _, err := c.Send(ctx, client.Command{
		HubID: hub.ID(), DeviceID: lock, Key: "lock", Value: true,
	}); !errors.Is(err, client.ErrCommandRefused) {
		t.Error(err)
	}
	hub.RejectCommands(false)
	hub.RadioDown(true)
	if _, err := c.Send(ctx, client.Command{
		HubID: hub.ID(), DeviceID: lock, Key: "lock", Value: true,
	}); !errors.Is(err, client.ErrHubUnavailable) {
		t.Error(err)
	}
}
