drc off
gds read layout.gds
load {{ "{" ~ cell ~ "}" }}
select top cell
flatten pex_flat
load pex_flat
cellname delete {{ "{" ~ cell ~ "}" }}
cellname rename pex_flat {{ "{" ~ cell ~ "}" }}
select top cell
extract path .
extract do local
extract all
ext2spice lvs
{# The hierarchical writer moves capacitance of gate nets to sources and drains. #}
ext2spice hierarchy off
ext2spice subcircuits top on
ext2spice cthresh 0
ext2spice rthresh infinite
ext2spice -o {{ whole_nets }}
{% if resistances %}
extract do resistance
extract all
ext2sim labels on
ext2sim
extresist tolerance 10
extresist all
ext2spice rthresh 0
ext2spice extresist on
{% endif %}
ext2spice -o out.spice
quit -noprompt
