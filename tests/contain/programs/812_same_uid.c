/* threat: 1.8-same-uid
 * attack: be the same user of the host as another cell, to reach what belongs to its keyrings, limits and files
 * expect: status=ok
 * stages: one & two
 * needs: root
 * probe: inspect
 * control: own_uid
 * bare: no two plain processes have one uid
 */
#include "attack.h"

int main(void)
{
    nap_ms(1200);
    return held();
}
