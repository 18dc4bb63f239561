// Fills the section of one table, by one thread or by all of a pool.
#ifndef ETE_SECTION_SORT_H_
#define ETE_SECTION_SORT_H_

#include "memory.h"
#include "pool.h"
#include "section.h"

namespace ete {

// Both write the same words. They throw Error kInvalidArgument for ids that contradict FeatureIds,
// and kResourceExhausted if there is no memory.
void fill_alone(Section& section, Scratch& scratch);
void fill_together(Section& section, Pool& pool);

}  // namespace ete

#endif  // ETE_SECTION_SORT_H_
