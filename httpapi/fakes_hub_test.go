package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
)

const (
	memberOwner   = "01940000-0000-7000-8000-0000000000c1"
	memberAdmin   = "01940000-0000-7000-8000-0000000000c2"
	memberForeign = "01940000-0000-7000-8000-0000000000c3"
	invitationOne = "01940000-0000-7000-8000-0000000000d1"
	nowhere       = "01940000-0000-7000-8000-0000000000ff"
)

// hub is how hubOne answers live, and the labels of its devices.
type hub struct {
	devices map[int64]domain.Device
	labels  map[int64]domain.DeviceLabel
	fault   error // what it answers to everything
	takes   time.Duration
	asked   int
	sent    []domain.Command
	pairing *string // the setup code that it was opened with
}

func text(s string) *string { return &s }

func newHub() hub {
	celsius, at := text("°C"), text("2026-01-02T03:04:05.000001Z")
	return hub{
		devices: map[int64]domain.Device{
			1: {
				ID:           1,
				Name:         "Front door",
				Manufacturer: "Acme",
				Model:        "L1",
				Channels: []domain.Channel{
					{
						Key: "lock", Kind: "lock", Readable: true, Writable: true,
						Capabilities: json.RawMessage(`{}`), Available: true,
						Value: json.RawMessage(
							`true`,
						), ObservedAt: at, Status: domain.ChannelSynchronized,
					},
					{
						Key: "pressure", Endpoint: 2, Kind: "pressure", Unit: celsius,
						Readable: true, Capabilities: json.RawMessage(`{}`),
						Status: domain.ChannelUnknown,
					},
				},
			},
			2: {
				ID:           2,
				Name:         "<Lamp> & co",
				Manufacturer: "Acme",
				Model:        "D2",
				Channels:     []domain.Channel{},
			},
		},
		labels: map[int64]domain.DeviceLabel{
			1:  {Room: text("Hall")},
			77: {Name: text("gone long ago")},
		},
	}
}

// live implements Devices and Commands.
type live struct{ *world }

// ask starts a call to the hub.
func (w live) ask(hub domain.HubID) error {
	w.hub.asked++
	if hub != hubOne {
		panic("a hub was asked that is not the caller's")
	}
	return w.hub.fault
}

func (w live) List(_ context.Context, hub domain.HubID) ([]domain.Device, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ask(hub); err != nil {
		return nil, err
	}
	// an event right after the list was made
	w.log = append(w.log, encodedEvent(uint64(len(w.log)+1), 0))
	return slices.SortedFunc(
		maps.Values(w.hub.devices), func(a, b domain.Device) int { return cmp.Compare(a.ID, b.ID) },
	), nil
}

func (w live) Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error) {
	select {
	case <-time.After(w.hub.takes):
	case <-ctx.Done():
		return domain.Device{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ask(hub); err != nil {
		return domain.Device{}, err
	}
	d, ok := w.hub.devices[device]
	if !ok {
		return d, domain.Errorf(domain.CodeNotFound, "no device %d", device)
	}
	return d, nil
}

func (w live) Forget(_ context.Context, hub domain.HubID, device int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ask(hub); err != nil {
		return err
	}
	switch device {
	case 1:
		return domain.Errorf(domain.CodeInvalidRequest, "device 1 is still on the hub's network")
	case 2:
		return nil
	default:
		return domain.Errorf(domain.CodeNotFound, "no device %d", device)
	}
}

func (w live) OpenPairing(
	_ context.Context, hub domain.HubID, setupCode *string,
) (domain.Window, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hub.pairing = setupCode
	return domain.Window{Status: domain.WindowOpen, ExpiresIn: 120}, w.ask(hub)
}

func (w live) ClosePairing(_ context.Context, hub domain.HubID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ask(hub)
}

func (w live) OpenRemoval(ctx context.Context, hub domain.HubID) (domain.Window, error) {
	return w.OpenPairing(ctx, hub, nil)
}

func (w live) CloseRemoval(ctx context.Context, hub domain.HubID) error {
	return w.ClosePairing(ctx, hub)
}

func (w live) Send(_ context.Context, _ domain.Origin, c domain.Command) (domain.Channel, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ask(c.HubID); err != nil {
		return domain.Channel{}, err
	}
	if _, ok := w.hub.devices[c.DeviceID]; !ok {
		return domain.Channel{}, domain.Errorf(domain.CodeNotFound, "no device %d", c.DeviceID)
	}
	w.hub.sent = append(w.hub.sent, c)
	return domain.Channel{
		Key: c.Key, Endpoint: c.Endpoint, Kind: c.Key, Available: true, Desired: c.Value,
		DesiredAt: text("2026-01-02T03:04:06.000000Z"),
		Status:    domain.ChannelPending,
	}, nil
}

func (w *world) DeviceLabels(
	context.Context, string, domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.hub.labels), w.fault
}

func (w *world) LabelDevice(
	_ context.Context, _ domain.Origin, c domain.LabelDevice,
) (domain.DeviceLabel, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	label := w.hub.labels[c.DeviceID]
	if c.SetName {
		label.Name = c.Name
	}
	if c.SetRoom {
		label.Room = c.Room
	}
	w.hub.labels[c.DeviceID] = label
	return label, nil
}

func (w *world) EndCursor(context.Context, domain.HubID) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("c%d", len(w.log)), w.fault
}

// members returns the members of orgOne; orgTwo has one more.
func (w *world) members() []domain.Member {
	return []domain.Member{
		{ID: memberOwner, Email: "ann@example.org", Role: domain.RoleOwner, JoinedAt: day},
		{ID: memberAdmin, Email: "bo+1@example.org", Role: domain.RoleAdmin, JoinedAt: day},
	}
}

func (w *world) Members(
	_ context.Context, org string, limit int, after string,
) (domain.Page[domain.Member], error) {
	all := w.members()
	if org != orgOne {
		all = nil
	}
	if after != "" {
		i := slices.IndexFunc(all, func(m domain.Member) bool { return m.ID == after })
		if i < 0 {
			return domain.Page[domain.Member]{}, domain.Errorf(
				domain.CodeInvalidRequest, "starting_after: no such member",
			)
		}
		all = all[i+1:]
	}
	return domain.Page[domain.Member]{
		Data:    all[:min(limit, len(all))],
		HasMore: len(all) > limit,
	}, w.fault
}

func (w *world) Member(_ context.Context, org, id string) (domain.Member, error) {
	for _, m := range w.members() {
		if org == orgOne && m.ID == id {
			return m, w.fault
		}
	}
	return domain.Member{}, domain.ErrMemberNotFound()
}

func (w *world) ChangeRole(
	ctx context.Context, _ domain.Origin, org, id string, role domain.Role,
) (domain.Member, error) {
	if role == domain.RoleOwner {
		return domain.Member{}, domain.Errorf(
			domain.CodeForbidden, "role: an API key makes nobody an owner",
		)
	}
	m, err := w.Member(ctx, org, id)
	if err == nil && m.Role == domain.RoleOwner {
		err = domain.Errorf(domain.CodeForbidden, "an API key does not change owners")
	}
	m.Role = role
	return m, err
}

func (w *world) RemoveMember(ctx context.Context, o domain.Origin, org, id string) error {
	_, err := w.ChangeRole(ctx, o, org, id, domain.RoleMember)
	return err
}

func (w *world) invitation(email string, role domain.Role) domain.Invitation {
	return domain.Invitation{
		ID: invitationOne, Email: email, Role: role, Status: domain.InvitationPending,
		CreatedAt: day, ExpiresAt: day.Add(7 * 24 * time.Hour),
	}
}

func (w *world) Invitations(
	_ context.Context, org string, limit int, after string, now time.Time,
) (domain.Page[domain.Invitation], error) {
	page := domain.Page[domain.Invitation]{Data: []domain.Invitation{}}
	if org == orgOne && after == "" {
		page.Data = append(page.Data, w.invitation("cy@example.org", domain.RoleAdmin))
	}
	return page, w.fault
}

func (w *world) Invite(
	_ context.Context, _ domain.Origin, _, email string, role domain.Role,
) (domain.Invitation, error) {
	if err := domain.CheckInvitedRole(role); err != nil {
		return domain.Invitation{}, err
	}
	email, err := domain.CleanEmail("email", email)
	if err != nil {
		return domain.Invitation{}, err
	}
	return w.invitation(email, role), w.fault
}

func (w *world) RevokeInvitation(_ context.Context, _ domain.Origin, org, id string) error {
	if org != orgOne || id != invitationOne {
		return domain.ErrInvitationNotFound()
	}
	return w.fault
}
