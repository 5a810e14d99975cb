package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

// localTime is the form of a time without an offset, with or without seconds.
var localTimes = []string{"2006-01-02T15:04:05", "2006-01-02T15:04"}

// credentialBody is a code of a lock. One that the service does not know has a slot only.
type credentialBody struct {
	Slot  int64   `json:"slot"`
	Label *string `json:"label"`
	// Source is api, or lock for a code that was set at the lock.
	Source     string                 `json:"source"`
	State      domain.CredentialState `json:"state"`
	Reason     *string                `json:"reason"`
	Message    *string                `json:"message"`
	ValidFrom  *string                `json:"valid_from"`
	ValidUntil *string                `json:"valid_until"`
	TimeZone   *string                `json:"time_zone"`
	Schedule   []domain.WeeklyTime    `json:"schedule"`
	CreatedAt  *string                `json:"created_at"`
	UpdatedAt  *string                `json:"updated_at"`
	// Code is present in the answer to the request that sets it only, and is never stored.
	Code string `json:"code,omitempty"`
}

func newCredentialBody(c domain.Credential) credentialBody {
	return credentialBody{
		Slot: c.Slot, Label: &c.Label, Source: "api", State: c.State, Reason: nonEmpty(c.Reason),
		Message: nonEmpty(c.Message), ValidFrom: optionalTime(c.ValidFrom),
		ValidUntil: optionalTime(c.ValidUntil), TimeZone: nonEmpty(c.TimeZone),
		Schedule: orEmpty(c.Schedule), CreatedAt: timeOrNull(c.CreatedAt),
		UpdatedAt: timeOrNull(c.UpdatedAt),
	}
}

type credentialsBody struct {
	Data []credentialBody `json:"data"`
	// Capacity is how many codes the lock has room for. It is null, and Complete false, if the lock
	// could not be asked: Data then lacks codes that were set at the lock.
	Capacity *int64 `json:"capacity"`
	Complete bool   `json:"complete"`
}

// sentCredentialsBody is the answer about one code for several locks.
type sentCredentialsBody struct {
	Label string               `json:"label"`
	Data  []sentCredentialItem `json:"data"`
	Code  string               `json:"code,omitempty"`
}

type sentCredentialItem struct {
	HubID    domain.HubID `json:"hub_id"`
	DeviceID int64        `json:"device_id"`
	// Slot and State are null with an Error.
	Slot  *int64                  `json:"slot"`
	State *domain.CredentialState `json:"state"`
	Error *commandError           `json:"error"`
}

func (a *api) credentialRoutes() []*route {
	const all = "/v1/hubs/{hub_id}/devices/{device_id}/credentials"
	const one = all + "/{slot}"
	const read, write = domain.ScopeCredentialsRead, domain.ScopeCredentialsWrite
	return []*route{
		keyRoute("GET", all, read, a.onDevice(a.listCredentials)),
		keyRoute("POST", all, write, a.onDevice(a.createCredential), readsBody),
		keyRoute("GET", one, read, a.onSlot(a.getCredential)),
		keyRoute("PATCH", one, write, a.onSlot(a.updateCredential), readsBody),
		keyRoute("DELETE", one, write, a.onSlot(a.revokeCredential)),
		keyRoute("POST", "/v1/credentials", write, a.createCredentials, readsBody),
	}
}

// onSlot returns the handler of a route about a slot of a lock.
func (a *api) onSlot(
	handle func(*request, domain.HubID, domain.CredentialSlot) error,
) func(*request) error {
	return a.onDevice(func(req *request, hub domain.HubID, device int64) error {
		text := req.http.PathValue("slot")
		slot, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(slot, 10) != text {
			return domain.ErrCredentialNotFound()
		}
		return handle(req, hub, domain.CredentialSlot{DeviceID: device, Slot: slot})
	})
}

// checkLock returns not_found for a device that is not known to be a lock. Its hub need not be
// online; one that has just connected for the first time is asked, since its devices are not known yet.
func (a *api) checkLock(req *request, hub domain.HubID, device int64) error {
	key := "lock"
	page, err := a.ReadModels.States(
		req.ctx, req.key.Reach, domain.StateFilter{HubID: &hub, Key: &key}, 1,
		domain.StatePosition{HubID: hub, DeviceID: device},
	)
	if err != nil || len(page.Data) > 0 && page.Data[0].DeviceID == device {
		return err
	}
	asked, err := a.Devices.Get(req.ctx, hub, device)
	isLock := func(c domain.Channel) bool { return c.Key == key }
	if err != nil || !slices.ContainsFunc(asked.Channels, isLock) {
		return domain.Errorf(domain.CodeNotFound, "no such device, or it is not known to be a lock")
	}
	return nil
}

// credentials returns the codes of a lock: those that the service knows, and those that the lock
// tells.
func (a *api) credentials(
	req *request, hub domain.HubID, device int64,
) (body credentialsBody, err error) {
	if err := a.checkLock(req, hub, device); err != nil {
		return body, err
	}
	known, err := a.Codes.Known(req.ctx, req.key.Reach.OrgID, hub, device)
	if err != nil {
		return body, err
	}
	body.Data = []credentialBody{}
	slots := map[int64]bool{}
	for _, c := range known {
		body.Data = append(body.Data, newCredentialBody(c))
		slots[c.Slot] = true
	}
	atLock, err := a.Codes.Slots(req.ctx, hub, device)
	if err != nil {
		return body, nil // the lock is away, or its hub does not know the method
	}
	body.Complete, body.Capacity = true, &atLock.Capacity
	for _, slot := range atLock.Slots {
		if !slots[slot] {
			body.Data = append(body.Data, credentialBody{
				Slot: slot, Source: "lock", State: domain.CredentialActive,
				Schedule: []domain.WeeklyTime{},
			})
		}
	}
	return body, nil
}

func (a *api) listCredentials(req *request, hub domain.HubID, device int64) error {
	body, err := a.credentials(req, hub, device)
	return req.answer(http.StatusOK, body, err)
}

func (a *api) getCredential(req *request, hub domain.HubID, at domain.CredentialSlot) error {
	all, err := a.credentials(req, hub, at.DeviceID)
	if err != nil {
		return err
	}
	for _, c := range all.Data {
		if c.Slot == at.Slot {
			return req.writeJSON(http.StatusOK, c)
		}
	}
	return domain.ErrCredentialNotFound()
}

// credentialFields are the fields of a request for a code.
var credentialFields = []string{
	"label", "code", "valid_from", "valid_until", "time_zone", "schedule",
}

// credentialRequest is a request for a code.
type credentialRequest struct {
	// code is the code; empty for none, and to be made with make.
	code string
	make bool
	// set has no hub, device, slot and version.
	set domain.SetCredential
	// key is the Idempotency-Key.
	key string
	// compared is what makes a repeated request the same, without the code.
	compared map[string]json.RawMessage
}

// readCredential reads the fields that requests for codes have in common.
func (a *api) readCredential(req *request, f *fields, isNew bool) credentialRequest {
	r := credentialRequest{set: domain.SetCredential{OrgID: req.key.Reach.OrgID, New: isNew}}
	if f.err == nil {
		r.key, f.err = req.idempotencyKey()
	}
	var terms domain.CredentialTerms
	if isNew || f.has("label") {
		terms.Label = read(f, "label", f.name)
	}
	if r.make = isNew; f.err == nil && f.has("code") {
		code := read(f, "code", f.nullableString)
		if r.make = code == nil; code != nil && f.err == nil {
			r.code, f.err = *code, domain.CheckDoorCode("code", *code)
		}
	}
	var zone *time.Location
	if text := f.optionalText("time_zone"); text != nil && f.err == nil {
		terms.TimeZone = *text
		zone, f.err = domain.LoadTimeZone("time_zone", *text)
	}
	terms.ValidFrom = f.bound("valid_from", zone)
	terms.ValidUntil = f.bound("valid_until", zone)
	if f.err == nil && f.has("schedule") && json.Unmarshal(f.object["schedule"], &terms.Schedule) != nil {
		f.err = invalid(`schedule: must be an array such as [{"days":["mon"],"from":"08:00","until":"17:00"}]`)
	}
	r.set.Change = func(t domain.CredentialTerms) domain.CredentialTerms {
		for name, change := range map[string]func(){
			"label": func() { t.Label = terms.Label }, "time_zone": func() { t.TimeZone = terms.TimeZone },
			"valid_from":  func() { t.ValidFrom = terms.ValidFrom },
			"valid_until": func() { t.ValidUntil = terms.ValidUntil },
			"schedule":    func() { t.Schedule = terms.Schedule },
		} {
			if f.has(name) {
				change()
			}
		}
		return t
	}
	r.compared = maps.Clone(f.object)
	if r.code != "" {
		r.compared["code"], _ = json.Marshal(a.Codes.MAC(r.code)) // bytes can be encoded
	}
	return r
}

// optionalText returns a string, nil for null and for a field that is absent.
func (f *fields) optionalText(name string) *string {
	if f.err != nil || !f.has(name) {
		return nil
	}
	return read(f, name, f.nullableString)
}

// bound returns a time, nil for null and for a field that is absent. Without an offset it is in a
// zone.
func (f *fields) bound(name string, zone *time.Location) *time.Time {
	text := f.optionalText(name)
	if text == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, *text)
	for _, layout := range localTimes {
		if err == nil {
			break
		}
		if at, err = time.ParseInLocation(layout, *text, time.UTC); err == nil && zone == nil {
			f.err = invalid("time_zone: is required for %s, which has no offset", name)
		} else if err == nil {
			at, err = time.ParseInLocation(layout, *text, zone)
		}
	}
	if err != nil {
		f.err = invalid(
			"%s: must be a time such as 2026-01-02T03:04:05Z, or 2026-01-02T03:04 with a time_zone", name,
		)
	}
	at = at.UTC().Truncate(time.Microsecond)
	return &at
}

// setOnce runs set once for the request's Idempotency-Key, with the code and an id, and returns its
// answer, and the code if it ran now. The code is never stored with the answer: a repetition does
// not get it.
func setOnce[T any](
	a *api, req *request, r credentialRequest, target string,
	set func(ctx context.Context, code, id string) (T, error),
) (body T, code string, err error) {
	compared := struct {
		Target string
		Body   map[string]json.RawMessage
	}{target, r.compared}
	body, err = onceAs(req, r.key, compared, func(ctx context.Context, id string) (none T, err error) {
		if id == "" {
			id = rand.Text()
		}
		if code = r.code; r.make {
			if code, err = a.Codes.Make(ctx, id); err != nil {
				return none, err
			}
		}
		return set(ctx, code, id)
	})
	if err != nil {
		return body, "", err
	}
	return body, code, nil
}

// setCredential answers with a code that was set.
func (a *api) setCredential(
	req *request, status int, hub domain.HubID, at domain.CredentialSlot, r credentialRequest,
) error {
	target := fmt.Sprintf("%s/%d/%d", hub, at.DeviceID, at.Slot)
	body, code, err := setOnce(
		a, req, r, target, func(ctx context.Context, code, id string) (body credentialBody, err error) {
			r.set.HubID, r.set.DeviceID, r.set.Slot, r.set.Version = hub, at.DeviceID, at.Slot, id
			c, err := a.Codes.Set(ctx, req.origin(), r.set, code)
			return newCredentialBody(c), err
		},
	)
	body.Code = code
	return req.answer(status, body, err)
}

func (a *api) createCredential(req *request, hub domain.HubID, device int64) error {
	f := req.readFields(append([]string{"slot"}, credentialFields...)...)
	r := a.readCredential(req, f, true)
	at := domain.CredentialSlot{DeviceID: device}
	if f.err == nil && f.has("slot") {
		at.Slot = read(f, "slot", f.count)
		f.require(
			at.Slot >= 1 && at.Slot <= domain.MaxCredentialSlot,
			invalid("slot: must be 1 to %d", domain.MaxCredentialSlot),
		)
	}
	if f.err != nil {
		return f.err
	}
	if err := a.checkLock(req, hub, device); err != nil {
		return err
	}
	return a.setCredential(req, http.StatusCreated, hub, at, r)
}

func (a *api) updateCredential(req *request, hub domain.HubID, at domain.CredentialSlot) error {
	f := req.readFields(credentialFields...)
	r := a.readCredential(req, f, false)
	f.require(len(f.object) > 0, invalid("body: must have a field to change"))
	if f.err != nil {
		return f.err
	}
	return a.setCredential(req, http.StatusOK, hub, at, r)
}

func (a *api) revokeCredential(req *request, hub domain.HubID, at domain.CredentialSlot) error {
	return req.answerNothing(
		a.Codes.Revoke(req.ctx, req.origin(), req.key.Reach.OrgID, hub, at),
	)
}

// createCredentials sets one code at several locks, and answers with an outcome for each.
func (a *api) createCredentials(req *request) error {
	f := req.readFields(append([]string{"channels", "select"}, credentialFields...)...)
	r := a.readCredential(req, f, true)
	b := batch{key: "lock"}
	if f.targets(&b); f.err != nil {
		return f.err
	}
	release, err := a.batches.Take(req.spender(), 1)
	if err != nil {
		return err
	}
	defer release()
	body, code, err := setOnce(
		a, req, r, "", func(ctx context.Context, code, id string) (sentCredentialsBody, error) {
			return a.setCredentials(ctx, req, r, b, code, id)
		},
	)
	if len(body.Data) > 0 { // a code that no lock gets is of no use
		body.Code = code
	}
	return req.answer(http.StatusAccepted, body, err)
}

func (a *api) setCredentials(
	ctx context.Context, req *request, r credentialRequest, b batch, code, id string,
) (sentCredentialsBody, error) {
	if b.selection != nil {
		if err := a.selectChannels(ctx, req.key.Reach, &b); err != nil {
			return sentCredentialsBody{}, err
		}
	}
	body := sentCredentialsBody{
		Label: r.set.Change(domain.CredentialTerms{}).Label,
		Data:  make([]sentCredentialItem, len(b.commands)),
	}
	var sets []domain.SetCredential
	var places []int
	for i, c := range b.commands {
		item := &body.Data[i]
		item.HubID, item.DeviceID = c.HubID, c.DeviceID
		err := error(domain.ErrHubNotFound())
		if isWithin(a.Hubs, req.key.Reach, c.HubID) {
			err = a.checkLock(req, c.HubID, c.DeviceID)
		}
		if err != nil {
			item.reject(err)
			continue
		}
		set := r.set
		set.HubID, set.DeviceID = c.HubID, c.DeviceID
		set.Version = fmt.Sprintf("%s.%s.%d", id, c.HubID, c.DeviceID)
		sets, places = append(sets, set), append(places, i)
	}
	for i, result := range a.Codes.SetAll(ctx, req.origin(), sets, code) {
		item := &body.Data[places[i]]
		if result.Err != nil {
			item.reject(result.Err)
			continue
		}
		item.Slot, item.State = &result.Credential.Slot, &result.Credential.State
	}
	return body, ctx.Err()
}

func (i *sentCredentialItem) reject(err error) {
	public := response.FromError(err).Error
	i.Error = &commandError{public.Code, public.Message}
}
