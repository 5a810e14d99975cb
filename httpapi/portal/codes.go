package portal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// Codes sets the codes of locks. Errors are domain.Errors: not_found for a hub or a code that the
// organization does not have, invalid_request for a slot that is taken.
type Codes interface {
	// Make returns a new code, and the same one for the same id for a short time.
	Make(ctx context.Context, id string) (string, error)
	// SetAll sets a code of several locks, or changes codes, which are pending then, and returns the
	// results in the same order. An empty code keeps the code. It does nothing for a Version that is
	// set already.
	SetAll(
		ctx context.Context, o domain.Origin, all []domain.SetCredential, code string,
	) []domain.CredentialResult
	// Revoke revokes a code.
	Revoke(
		ctx context.Context, o domain.Origin, org string, hub domain.HubID, at domain.CredentialSlot,
	) error
	// Known returns the codes that the service knows, of a device or of all for 0.
	Known(
		ctx context.Context, org string, hub domain.HubID, device int64,
	) ([]domain.Credential, error)
	Slots(ctx context.Context, hub domain.HubID, device int64) (protocol.CredentialSlots, error)
}

// codesView is the page of door codes: who may enter where, and until when.
type codesView struct {
	Layout
	Sites []domain.Site
	// Site is the chosen site, "" for all.
	Site string
	// Doors are the locks that reported last, Chosen those that were chosen for a code.
	Doors []codeDoor
	Codes []codeRow
	// Asked reports whether the locks were asked for the codes that were set at them, and Silent is
	// how many did not answer.
	Asked  bool
	Silent int
	// Code is a code that this request has set, for people to copy, and Results what became of it at
	// each lock.
	Code    string
	Results []codeResult
	// New is the form of a new code, and Changed the rejected form of changing the code with the field
	// ChangedCode.
	New, Changed codeForm
	ChangedCode  string
}

// codeDoor is a lock.
type codeDoor struct {
	Hub                                 domain.HubID
	DeviceID                            int64
	Name, Room, HubName, Site, SiteName string
	Chosen                              bool
}

// Field returns the lock as a value of the form.
func (d codeDoor) Field() string { return deviceField(d.Hub, d.DeviceID) }

// codeRow is a code of a lock.
type codeRow struct {
	domain.Credential
	Door codeDoor
	// Own reports whether the code was set at the lock: nothing but its slot is known.
	Own bool
	// Form is the form that changes the code.
	Form codeForm
}

// Field returns the code as a value of the form.
func (r codeRow) Field() string { return r.Door.Field() + "/" + formatInt(r.Slot) }

// Over reports whether the code opens no more.
func (r codeRow) Over(now time.Time) bool { return r.ValidUntil != nil && !r.ValidUntil.After(now) }

// codeResult is what became of a new code at a lock.
type codeResult struct {
	Door    codeDoor
	Problem string
}

// codes shows the codes of all locks, or of those at a site.
func (req *request) codes() error { return req.showCodes(http.StatusOK, codesView{}) }

func (req *request) showCodes(status int, view codesView) error {
	view.Site = req.queryValue("site")
	var err error
	if view.Sites, view.Doors, err = req.codeDoors(view.Site); err != nil {
		return err
	}
	chosen := req.http.PostForm["door"]
	for i, d := range view.Doors {
		view.Doors[i].Chosen = view.Code == "" && slices.Contains(chosen, d.Field())
	}
	if view.Codes, err = req.codesOf(view.Doors); err != nil {
		return err
	}
	if view.Asked = req.queryValue("ask") != ""; view.Asked {
		req.askLocks(&view)
	}
	slices.SortFunc(view.Codes, func(a, b codeRow) int {
		return cmp.Or(
			compareNatural(a.Label, b.Label), compareNatural(a.Door.SiteName, b.Door.SiteName),
			compareNatural(a.Door.Name, b.Door.Name), cmp.Compare(a.Field(), b.Field()),
		)
	})
	for i, code := range view.Codes {
		view.Codes[i].Form = codeFormOf(code.CredentialTerms, req.zone())
		if code.Field() == view.ChangedCode {
			view.Codes[i].Form = view.Changed
		}
		view.Codes[i].Form.ID = "-" + formatInt(int64(i))
	}
	if view.New.Zone == "" {
		view.New = codeFormOf(domain.CredentialTerms{}, req.zone())
	}
	if view.Layout = req.layout("Door codes", "people"); view.Code != "" {
		view.Scripts = []string{"copy.js"}
	}
	view.Scripts = append(view.Scripts, "codes.js")
	req.render(status, "codes.html", view)
	return nil
}

// codeDoors returns the sites of the organization, and its locks at a site or, for "", at all.
func (req *request) codeDoors(site string) (sites []domain.Site, doors []codeDoor, err error) {
	if sites, err = req.allSites(); err != nil {
		return nil, nil, err
	}
	hubs, err := req.hubStates(req.ctx, req.org, "")
	if err != nil {
		return nil, nil, err
	}
	hubNames, names := map[domain.HubID]string{}, siteNames(sites)
	for _, hub := range hubs {
		hubNames[hub.ID] = cmp.Or(hub.Name, string(hub.ID))
	}
	key := "lock"
	filter, after := domain.StateFilter{Key: &key}, domain.StatePosition{}
	if site != "" {
		filter.SiteID = &site
	}
	for range unlockedReads {
		found, err := req.Reported.States(
			req.ctx, domain.Reach{OrgID: req.org}, filter, findPage, after,
		)
		if err != nil {
			return nil, nil, err
		}
		for _, state := range found.Data {
			d := lastDevice(state.HubID, []domain.ReportedState{state})
			door := codeDoor{
				Hub: state.HubID, DeviceID: d.ID, Name: d.Name, Room: d.Room,
				HubName: hubNames[state.HubID], Site: state.SiteID, SiteName: names[state.SiteID],
			}
			if n := len(doors); n == 0 || doors[n-1].Field() != door.Field() {
				doors = append(doors, door)
			}
		}
		if after = found.Next; !found.HasMore {
			break
		}
	}
	slices.SortStableFunc(doors, func(a, b codeDoor) int {
		return cmp.Or(
			compareNatural(a.SiteName, b.SiteName), compareNatural(a.HubName, b.HubName),
			compareNatural(a.Name, b.Name),
		)
	})
	return sites, doors, nil
}

// codesOf returns the codes of locks.
func (req *request) codesOf(doors []codeDoor) (rows []codeRow, err error) {
	byField, hubs := map[string]codeDoor{}, map[domain.HubID]bool{}
	for _, d := range doors {
		byField[d.Field()], hubs[d.Hub] = d, true
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(req.ctx)
	group.SetLimit(concurrentHubs)
	for hub := range hubs {
		group.Go(func() error {
			known, err := req.Codes.Known(ctx, req.org, hub, 0)
			mu.Lock()
			defer mu.Unlock()
			for _, c := range known {
				if door, ok := byField[deviceField(hub, c.DeviceID)]; ok {
					rows = append(rows, codeRow{Credential: c, Door: door})
				}
			}
			return err
		})
	}
	return rows, group.Wait()
}

// lockPatience is how long a page waits for locks.
const lockPatience = 4 * time.Second

// askLocks adds the codes that were set at the locks themselves.
func (req *request) askLocks(view *codesView) {
	known := map[string]bool{}
	for _, code := range view.Codes {
		known[code.Field()] = true
	}
	ctx, cancel := context.WithTimeout(req.ctx, lockPatience)
	defer cancel()
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(concurrentHubs)
	for _, door := range view.Doors {
		group.Go(func() error {
			at, err := req.Codes.Slots(ctx, door.Hub, door.DeviceID)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				view.Silent++
			}
			for _, slot := range at.Slots {
				row := codeRow{Door: door, Own: true}
				row.DeviceID, row.Slot = door.DeviceID, slot
				if !known[row.Field()] {
					view.Codes = append(view.Codes, row)
				}
			}
			return nil
		})
	}
	_ = group.Wait() // failures are counted
}

// createCode sets one code at all chosen locks, and shows it. It does not redirect: the code would
// have to be stored for the next page.
func (req *request) createCode() error {
	view := codesView{New: req.typedCode()}
	err := req.submitOnce(func() error { return req.setCode(&view) })
	if errors.Is(err, errAlreadySubmitted) {
		req.redirectInOrg("codes", "code-shown")
		return nil
	}
	if problem, ok := rejectionText(err); ok {
		view.New.Problem = codeProblem(err, problem)
		return req.showCodes(rejectionStatus(err), view)
	}
	if err != nil {
		return err
	}
	return req.showCodes(http.StatusCreated, codesView{Code: view.Code, Results: view.Results})
}

// codeProblem returns the text of a rejection with the field that it is about.
func codeProblem(err error, problem string) string {
	field, ok := map[string]string{
		"label": "Person", "code": "Code", "valid_from": "From", "valid_until": "Until",
		"doors": "Doors", "schedule": "Times of the week", "time_zone": "Time zone",
	}[rejectedField(err)]
	if !ok {
		return problem
	}
	return field + ": " + strings.ReplaceAll(problem, "valid_from", "“From”")
}

func (req *request) setCode(view *codesView) error {
	change, err := view.New.terms(req.zone())
	if err != nil {
		return err
	}
	_, doors, err := req.codeDoors("")
	if err != nil {
		return err
	}
	chosen := req.http.PostForm["door"]
	doors = slices.DeleteFunc(doors, func(d codeDoor) bool { return !slices.Contains(chosen, d.Field()) })
	if len(doors) == 0 || len(doors) > maxTargets {
		return domain.Errorf(
			domain.CodeInvalidRequest, "doors: must be 1 to %d", maxTargets,
		)
	}
	code := req.formValue("code")
	if code == "" {
		code, err = req.Codes.Make(req.ctx, rand.Text())
	} else {
		err = domain.CheckDoorCode("code", code)
	}
	if err != nil {
		return err
	}
	sets := make([]domain.SetCredential, len(doors))
	for i, d := range doors {
		sets[i] = domain.SetCredential{
			OrgID: req.org, HubID: d.Hub, DeviceID: d.DeviceID, Version: rand.Text(), New: true,
			Change: change,
		}
	}
	failed := 0
	for i, result := range req.Codes.SetAll(req.ctx, req.origin(), sets, code) {
		outcome := codeResult{Door: doors[i]}
		if result.Err != nil {
			failed++
			if outcome.Problem, _ = rejectionText(result.Err); outcome.Problem == "" {
				outcome.Problem = "The service failed. Try again."
			}
			err = result.Err
		}
		view.Results = append(view.Results, outcome)
	}
	if failed == len(doors) {
		return err
	}
	view.Code = code
	return nil
}

// codeOfForm returns the hub and the slot that a form names.
func (req *request) codeOfForm() (domain.HubID, domain.CredentialSlot, error) {
	parts := strings.Split(req.formValue("credential"), "/")
	if len(parts) == 3 {
		hub, ok := domain.ParseHubID(parts[0])
		device, err := strconv.ParseInt(parts[1], 10, 64)
		slot, err2 := strconv.ParseInt(parts[2], 10, 64)
		if ok && err == nil && err2 == nil {
			return hub, domain.CredentialSlot{DeviceID: device, Slot: slot}, nil
		}
	}
	return "", domain.CredentialSlot{}, domain.ErrCredentialNotFound()
}

// changeCode changes whose a code is and when it opens. The code stays.
func (req *request) changeCode() error {
	hub, at, err := req.codeOfForm()
	if err != nil {
		return err
	}
	form := req.typedCode()
	change, err := form.terms(req.zone())
	if err == nil {
		err = req.Codes.SetAll(req.ctx, req.origin(), []domain.SetCredential{{
			OrgID: req.org, HubID: hub, DeviceID: at.DeviceID, Slot: at.Slot, Version: rand.Text(),
			Change: change,
		}}, "")[0].Err
	}
	return req.finishForm(
		err, "codes"+req.listQuery(), "code-changed", func(status int, problem string) error {
			form.Problem = codeProblem(err, problem)
			return req.showCodes(
				status, codesView{Changed: form, ChangedCode: req.formValue("credential")},
			)
		},
	)
}

// revokeCode removes a code from its lock.
func (req *request) revokeCode() error {
	hub, at, err := req.codeOfForm()
	if err == nil {
		err = req.Codes.Revoke(req.ctx, req.origin(), req.org, hub, at)
	}
	return req.finish(err, "codes"+req.listQuery(), "code-revoked")
}

// codeName returns who a code of a lock is for, such as "Anna (code 3)", if it was set before a time.
func (c *commanders) codeName(hub domain.HubID, device int64, slot float64, at time.Time) string {
	known, read := c.codes[hub]
	if !read && c.req.Portal != nil && c.req.Codes != nil {
		// Without an answer the number is shown.
		known, _ = c.req.Codes.Known(c.req.ctx, c.req.org, hub, 0)
		c.codes[hub] = known
	}
	name := "code " + formatNumber(slot)
	for _, code := range known {
		// An earlier event is of somebody who had the slot before.
		if code.DeviceID == device && float64(code.Slot) == slot && !code.CreatedAt.After(at) {
			return fmt.Sprintf("%s (%s)", code.Label, name)
		}
	}
	return name
}
