package portal

import (
	"net/url"
	"testing"

	"hubcloud/domain"
)

// FuzzReadCommand checks that the API accepts every command that readCommand returns.
func FuzzReadCommand(f *testing.F) {
	f.Add("lock", "0", "true", "", "once")
	f.Add("color", "1", "#ff0080", "7", "once")
	f.Add("heating_setpoint", "0", "21,5", "", "once")
	f.Add("mode", "0", "\"\\", "", "once")
	f.Add("level", "-1", "1e1", "x", "")
	f.Fuzz(func(t *testing.T, key, endpoint, value, white, once string) {
		form := url.Values{
			"key":             {key},
			"endpoint":        {endpoint},
			"value":           {value},
			"warm_white":      {white},
			"idempotency_key": {once},
		}
		command, err := readCommand("org", "hub-aaaa-aaaa-aaaa", 1, form)
		if err != nil {
			return
		}
		again, err := domain.CheckCommandValue(command.Key, command.Value)
		if err != nil || string(again) != string(command.Value) || command.Endpoint < 0 ||
			domain.CheckIdempotencyKey(command.IdempotencyKey) != nil {
			t.Errorf("ReadCommand(%v): got %+v, %v, want a valid command", form, command, err)
		}
	})
}
