package check

import (
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

// checkCredentials lists the codes of the first lock that takes codes, and sets and removes one in a
// slot that has none.
func (s *script) checkCredentials() {
	none := func(why string) {
		s.hint("credentials.list", "%s", why)
		s.hint("credentials.set", "%s", why)
	}
	if !s.credentials {
		none("the hub's hello has no credentials")
		return
	}
	for _, d := range s.devices {
		isLock := func(ch domain.Channel) bool { return ch.Key == "lock" }
		if !slices.ContainsFunc(d.Channels, isLock) {
			continue
		}
		list := s.call(protocol.MethodCredentialsList, deviceParams{d.ID})
		if list.err.Type == protocol.ErrorNotFound {
			continue // another kind of lock
		}
		s.checkLockCodes(d.ID, list)
		return
	}
	none("the hub has no lock that takes codes")
}

func (s *script) checkLockCodes(device int64, list *call) {
	var slots protocol.CredentialSlots
	if !s.wantResult("credentials.list", list, func(result []byte) (err error) {
		slots, err = codec.ParseSlots(result)
		return err
	}) {
		return
	}
	s.pass("credentials.list")
	slot := slots.Capacity
	for slices.Contains(slots.Slots, slot) {
		slot--
	}
	if slot < 1 || int64(len(slots.Slots)) >= slots.Capacity {
		s.hint("credentials.set", "the lock has no free slot")
		return
	}
	has := func(want bool) bool {
		again := s.call(protocol.MethodCredentialsList, deviceParams{device})
		return s.wantResult("credentials.set", again, func(result []byte) error {
			listed, err := codec.ParseSlots(result)
			if err == nil && slices.Contains(listed.Slots, slot) != want {
				err = fmt.Errorf("slots has %d: %t, want %t", slot, !want, want)
			}
			return err
		})
	}
	done := func([]byte) error { return nil }
	set := protocol.CredentialParams{
		DeviceID: device, Slot: slot, Label: "hub check",
		Code: fmt.Sprintf("%06d", time.Now().UnixNano()%1_000_000),
	}
	remove := map[string]int64{"device_id": device, "slot": slot}
	ok := true
	for range 2 { // the same again must succeed
		ok = ok && s.wantResult("credentials.set", s.call(protocol.MethodCredentialsSet, set), done)
	}
	ok = ok && has(true)
	for range 2 {
		ok = s.wantResult("credentials.set", s.call(protocol.MethodCredentialsRemove, remove), done) && ok
	}
	if ok && has(false) {
		s.pass("credentials.set")
	}
}
