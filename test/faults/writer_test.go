package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// writer creates and renames sites, creates and revokes invitations, and records the answers.
type writer struct {
	*harness.Tenant
	t            *testing.T
	written      int
	names        []string // sites of successful requests, in order
	ids          []string
	unknownSites map[string]bool // names of sites in unanswered requests
	pace         *time.Ticker
	invited      map[string]bool // by id: whether the invitation is pending
	// failed counts answers of 500 and above by status and type.
	failed map[string]int
}

// run writes until stop is closed.
func (w *writer) run(stop <-chan struct{}) {
	w.unknownSites, w.pace = map[string]bool{}, time.NewTicker(retryPause)
	defer w.pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		name := fmt.Sprintf("Site %d", n)
		var created struct{ ID string }
		if w.write(
			http.MethodPost, "/sites", map[string]string{"name": name}, http.StatusCreated,
			&created,
		) {
			w.names, w.ids = append(w.names, name), append(w.ids, created.ID)
		} else {
			w.unknownSites[name] = true
			continue
		}
		if !w.write(
			http.MethodPost, "/invitations",
			map[string]string{"email": fmt.Sprintf("p%d@%s", n, w.Owner[len("owner@"):])},
			http.StatusCreated, &created,
		) {
			continue
		}
		w.invited[created.ID] = true
		if n%2 == 0 {
			delete(w.invited, created.ID) // unknown until the revocation is answered
			if w.write(
				http.MethodDelete, "/invitations/"+created.ID, nil, http.StatusNoContent, nil,
			) {
				w.invited[created.ID] = false
			}
		}
	}
}

// write reports whether a request was answered with the wanted status.
func (w *writer) write(method, path string, body any, status int, answered any) bool {
	<-w.pace.C
	answer, err := w.Do(method, path, body)
	if err != nil || answer.Status >= 500 {
		if err == nil {
			if w.failed == nil {
				w.failed = map[string]int{}
			}
			w.failed[fmt.Sprintf("%d %s", answer.Status, answer.ErrorType())]++
		}
		return false // the service is down
	}
	if answer.Status != status {
		w.t.Errorf("%s %s: got %d %s, want %d", method, path, answer.Status, answer.Body, status)
		return false
	}
	w.written++
	if answered != nil {
		if err := json.Unmarshal(answer.Body, answered); err != nil {
			w.t.Error(err)
		}
	}
	return true
}

// check compares the sites and invitations of the service with the recorded answers.
func (w *writer) check() {
	w.t.Helper()
	var got []string
	after := ""
	for more := true; more; {
		var page struct {
			Data    []struct{ ID, Name string }
			HasMore bool `json:"has_more"`
		}
		w.Must(http.MethodGet, "/sites"+after, nil, http.StatusOK).JSON(w.t, &page)
		for _, site := range page.Data {
			if site.ID != w.Site {
				got = append(got, site.Name)
			}
			after = "?starting_after=" + site.ID
		}
		more = page.HasMore
	}
	next := 0
	for _, name := range got {
		switch {
		case next < len(w.names) && w.names[next] == name:
			next++
		case w.unknownSites[name]:
			w.unknownSites[name] = false // once
		default:
			w.t.Errorf(
				"%s: got site %q, which was never requested or is listed twice", w.Owner, name,
			)
		}
	}
	if next != len(w.names) {
		w.t.Errorf("%s: want %d sites in order, got %d", w.Owner, len(w.names), next)
	}
	pending := map[string]bool{}
	after = ""
	for more := true; more; {
		var page struct {
			Data    []struct{ ID string }
			HasMore bool `json:"has_more"`
		}
		w.Must(http.MethodGet, "/invitations"+after, nil, http.StatusOK).JSON(w.t, &page)
		for _, invitation := range page.Data {
			pending[invitation.ID] = true
			after = "?starting_after=" + invitation.ID
		}
		more = page.HasMore
	}
	for id, want := range w.invited {
		if pending[id] != want {
			w.t.Errorf("%s: invitation %s pending: got %v, want %v", w.Owner, id, pending[id], want)
		}
	}
}
