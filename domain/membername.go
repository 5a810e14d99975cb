package domain

import (
	"cmp"
	"slices"
)

// DisplayName returns the member's name, or the address of a member without one.
func (m OrgMember) DisplayName() string { return cmp.Or(m.Name, m.Email) }

// withMember returns the state with a member changed; a copy of s for an unknown member.
func (s OrgState) withMember(id string, change func(*OrgMember)) OrgState {
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		if s.Members[i].ID == id {
			change(&s.Members[i])
		}
	}
	return s
}

// DecideNameMember sets the actor's own name; "" removes it. It returns no event if the name is the
// same, and not_found for an actor who is no member. The caller has validated the name.
func DecideNameMember(s OrgState, o Origin, name string) ([]Event, error) {
	member, ok := s.Member(o.Actor.ID)
	if !ok || o.Actor.Kind != ActorMember {
		return nil, ErrMemberNotFound()
	}
	if member.Name == name {
		return nil, nil
	}
	return []Event{Record(o, MemberNamed{OrgID: s.ID, MemberID: member.ID, Name: name})}, nil
}
