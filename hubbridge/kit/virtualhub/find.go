package virtualhub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"
)

// requestTimeout bounds a request to a process of the same machine.
const requestTimeout = 15 * time.Second

// Process is a process that serves virtual hubs.
type Process struct {
	entry entry
	// Hubs describes its hubs at the time of Find.
	Hubs []Info
}

// ActionError is what is wrong with an action.
type ActionError struct{ Message string }

func (e *ActionError) Error() string { return e.Message }

// Find returns the processes that name themselves in folder and answer, with their hubs. It removes
// the files of processes that were killed.
func Find(ctx context.Context, folder string) ([]Process, error) {
	entries, err := read(folder)
	if err != nil {
		return nil, err
	}
	var processes []Process
	for path, e := range entries {
		p := Process{entry: e}
		err := p.request(ctx, http.MethodGet, "/hubs", nil, &p.Hubs)
		if errors.Is(err, syscall.ECONNREFUSED) { // the process was killed
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			continue
		}
		if err == nil { // otherwise another program has the port of a killed process
			processes = append(processes, p)
		}
	}
	return processes, nil
}

// Do runs an action on the hub with the given id and returns what the hub did, in one sentence.
func (p Process) Do(ctx context.Context, hubID string, a Action) (message string, err error) {
	body, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	var r result
	err = p.request(ctx, http.MethodPost, "/hubs/"+url.PathEscape(hubID), body, &r)
	return r.Message, err
}

// request sends a request and decodes the response into out.
func (p Process) request(ctx context.Context, method, path string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(
		ctx, method, "http://"+p.entry.Address+path, bytes.NewReader(body),
	)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+p.entry.Token)
	// Not the default client: a proxy of the environment must not see requests to this machine.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return json.NewDecoder(response.Body).Decode(out)
	}
	var failed result
	if json.NewDecoder(response.Body).Decode(&failed) != nil || failed.Error == "" {
		return fmt.Errorf("the process %d answered %s", p.entry.PID, response.Status)
	}
	return &ActionError{failed.Error}
}
