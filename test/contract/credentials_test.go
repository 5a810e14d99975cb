package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// doorCode is a code as the API answers.
type doorCode struct {
	Slot       int64
	Label      *string
	Source     string
	State      string
	Reason     *string
	ValidFrom  *string `json:"valid_from"`
	ValidUntil *string `json:"valid_until"`
	Code       string
}

type doorCodeList struct {
	Data     []doorCode
	Capacity *int64
	Complete bool
}

// doorCodes tests the codes of locks, which are an addition to the contract.
func doorCodes(t *testing.T, c *harness.Target) {
	client := c.Tenant("Door codes")
	hub := c.VirtualHub(client, virtualhub.Config{
		Devices: []virtualhub.DeviceSpec{{Kind: "lock"}, {Kind: "lock"}, {Kind: "switch"}},
	})
	harness.Must(t, hub.SetOwnCode(1, 1, "99887766"))
	lock := func(device int) string {
		return fmt.Sprintf("/hubs/%s/devices/%d/credentials", hub.ID(), device)
	}
	list := func() (l doorCodeList) {
		t.Helper()
		client.Get(lock(1)).JSON(t, &l)
		return l
	}
	streamstest.Eventually(t, "the service knows the lock", func() bool {
		answer, err := client.Do(http.MethodGet, lock(1), nil)
		return err == nil && answer.Status == http.StatusOK
	})
	if l := list(); !l.Complete || *l.Capacity != 30 || len(l.Data) != 1 || l.Data[0].Label != nil ||
		l.Data[0].Source != "lock" {
		t.Errorf("at first: got %+v, want the lock's own code", l)
	}

	// A code is made, shown once, and reaches the lock.
	make := func(body string, key string) (code doorCode) {
		t.Helper()
		client.Create(lock(1), body, "Idempotency-Key", key).JSON(t, &code)
		return code
	}
	const cleaner = `{"label":"Cleaner","valid_until":"2099-01-12T18:00","time_zone":"Europe/Berlin",` +
		`"schedule":[{"days":["mon","tue","wed","thu","fri","sat","sun"],"from":"00:00","until":"24:00"}]}`
	made := make(cleaner, "one")
	if len(made.Code) != 6 || made.Slot != 2 || made.State != "pending" ||
		*made.ValidUntil != "2099-01-12T17:00:00.000000Z" {
		t.Errorf("got %+v, want a code of 6 digits in slot 2, pending, until 18:00 in Berlin", made)
	}
	if again := make(cleaner, "one"); again.Code != "" || again.Slot != 2 {
		t.Errorf("repeated: got %+v, want the first answer without the code", again)
	}
	one := lock(1) + "/2"
	await := func(state string) {
		t.Helper()
		streamstest.Eventually(t, "the code is "+state, func() bool {
			var code doorCode
			answer, err := client.Do(http.MethodGet, one, nil)
			harness.Must(t, err)
			if state == "gone" || answer.Status != http.StatusOK {
				return state == "gone" && answer.Status == http.StatusNotFound
			}
			answer.JSON(t, &code)
			return code.State == state && code.Code == ""
		})
	}
	opens := func(code string, want int64) {
		t.Helper()
		if slot, err := hub.EnterCode(1, code); slot != want || err != nil {
			t.Errorf("the code opens in slot %d, %v, want %d", slot, err, want)
		}
	}
	await("active")
	opens(made.Code, 2)

	// A change without a code keeps it, one with a code replaces it, and null makes another.
	change := func(body string) (code doorCode) {
		t.Helper()
		client.Patch(one, body).JSON(t, &code)
		await("active")
		return code
	}
	if code := change(`{"label":"Night cleaner"}`); code.Code != "" || *code.Label != "Night cleaner" ||
		code.ValidUntil == nil {
		t.Errorf("changed: got %+v, want another label only", code)
	}
	opens(made.Code, 2)
	change(`{"code":"55443322","valid_until":null}`)
	opens(made.Code, 0)
	opens("55443322", 2)
	opens(change(`{"code":null}`).Code, 2)

	// A code that the lock does not take has failed, and what it had stays.
	client.Patch(one, `{"code":"99887766"}`)
	await("failed")
	client.Delete(one)
	await("gone")
	streamstest.Eventually(t, "the contract's events", func() bool {
		var types []string
		for _, e := range client.AllEvents(hub.ID(), "") {
			types = append(types, e.Type)
		}
		all := strings.Join(types, " ")
		return strings.Contains(all, "credential.created") &&
			strings.Contains(all, "credential.applied") && strings.Contains(all, "credential.revoked")
	})

	// A lock that is away gets its code when it is back.
	hub.Offline(true)
	streamstest.Eventually(t, "the hub is offline", func() bool { return !list().Complete })
	make(`{"label":"Guest","slot":2,"code":"12344321"}`, "away")
	await("pending")
	hub.Offline(false)
	await("active")
	opens("12344321", 2)
	manyDoorCodes(t, client, hub.ID(), lock)
	doorCodeRejections(t, client, lock, one)
}

// manyDoorCodes sets one code at several locks.
func manyDoorCodes(
	t *testing.T, client *harness.Tenant, hub string, lock func(int) string,
) {
	body := `{"label":"Night shift","channels":[{"hub_id":"hub-0000-0000-0000","device_id":1}],` +
		`"select":{"hub_id":"` + hub + `"}}`
	answer := client.Command("/credentials", body, "Idempotency-Key", "many")
	var sent struct {
		Code string
		Data []struct {
			Slot  *int64
			Error *struct{ Type string }
		}
	}
	if answer.JSON(t, &sent); len(sent.Data) != 3 || len(sent.Code) != 6 ||
		sent.Data[0].Error.Type != "not_found" || sent.Data[1].Slot == nil || sent.Data[2].Slot == nil {
		t.Errorf("many: got %s, want a code for two locks", answer.Body)
	}
	client.Rejected(
		http.MethodPost, "/credentials", strings.Replace(body, "Night", "Day", 1),
		"idempotency_conflict", "Idempotency-Key", "many",
	)
	none := client.Command("/credentials", `{"label":"Day shift","select":{"room":"No such room"}}`)
	if strings.Contains(string(none.Body), `"code"`) {
		t.Errorf("no lock: got %s, want no code", none.Body)
	}
	streamstest.Eventually(t, "the second lock has the code", func() bool {
		var l doorCodeList
		client.Get(lock(2)).JSON(t, &l)
		return len(l.Data) == 1 && l.Data[0].State == "active"
	})
}

func doorCodeRejections(t *testing.T, client *harness.Tenant, lock func(int) string, one string) {
	large := strings.Repeat(" ", 64<<10+1)
	for _, r := range [][2]string{
		{http.MethodGet, lock(1)}, {http.MethodPost, lock(1)}, {http.MethodGet, one},
		{http.MethodPatch, one}, {http.MethodDelete, one}, {http.MethodPost, "/credentials"},
	} {
		client.Rejected(r[0], r[1], large, "invalid_request")
	}
	for _, body := range []string{
		`{}`, `{"label":""}`, `{"label":"a","code":"123"}`, `{"label":"a","code":1234}`,
		`{"label":"a","slot":0}`, `{"label":"a","slot":1}`, `{"label":"a","slot":2}`,
		`{"label":"a","valid_from":"2026-01-05T08:00"}`, `{"label":"a","valid_from":"soon"}`,
		`{"label":"a","time_zone":"Mars/Olympus"}`, `{"label":"a","schedule":"always"}`,
	} {
		client.Rejected(http.MethodPost, lock(1), body, "invalid_request")
	}
	const label = `{"label":"a"}`
	for method, paths := range map[string][]string{
		http.MethodGet:    {lock(3), lock(9), lock(1) + "/9", lock(1) + "/x"},
		http.MethodPost:   {lock(3)},
		http.MethodPatch:  {lock(1) + "/9", lock(1) + "/1"},
		http.MethodDelete: {lock(1) + "/9", lock(1) + "/1"},
	} {
		for _, path := range paths {
			var body any
			if method == http.MethodPost || method == http.MethodPatch {
				body = json.RawMessage(label)
			}
			client.Rejected(method, path, body, "not_found")
		}
	}
	for method, path := range map[string]string{http.MethodPost: lock(2), http.MethodPatch: one} {
		key := "conflict" + method
		client.Must(
			method, path, label, map[string]int{"POST": 201, "PATCH": 200}[method], "Idempotency-Key", key,
		)
		client.Rejected(
			method, path, `{"label":"b"}`, "idempotency_conflict", "Idempotency-Key", key,
		)
	}
}
